#include "context.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tessera::onednn {

namespace {

// Above what a core does at its best: two fused multiply-adds of 16 lanes a cycle at 4 GHz, and
// what one core reads from memory.
constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9;
constexpr double kBytesPerSecond = 20e9;

// How far an implementation stays below that even at its best, by a part of its name.
struct Slowness {
  std::string_view part;
  double factor;
};
constexpr Slowness kSlowness[] = {
    {"ref", 100}, {"gemm:ref", 100}, {"simple", 10}, {"gemm", 2}, {"sse41", 4}, {"avx2", 2},
};

}  // namespace

Context::Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                 plugin::Proposals& proposals, const dnnl::engine& engine)
    : graph_(graph), options_(options), proposals_(proposals), engine_(engine) {}

dnnl::primitive_attr Context::attributes() const {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(options_.precision == TESSERA_PRECISION_BFLOAT16
                                 ? dnnl::fpmath_mode::bf16
                                 : dnnl::fpmath_mode::strict);
  return attributes;
}

double Context::optimistic_seconds(double flops, double bytes,
                                   std::string_view implementation) const {
  double factor = 1;
  for (const Slowness& slowness : kSlowness) {
    if (implementation.find(slowness.part) != std::string_view::npos) {
      factor = std::max(factor, slowness.factor);
    }
  }
  const double threads = std::max(options_.threads, 1);
  return std::max(flops * factor / (kFlopsPerSecond * threads), bytes / kBytesPerSecond);
}

void Context::add(plugin::Candidate candidate) {
  taken_.insert(candidate.nodes.begin(), candidate.nodes.end());
  proposals_.add(std::move(candidate));
}

void Context::refuse(int32_t node, const std::string& reason) {
  reasons_.try_emplace(node, reason);
}

void Context::for_each(std::initializer_list<std::string_view> ops,
                       const std::function<void(const plugin::Node& node)>& offer) {
  for (int32_t id = 0; id < graph_.node_count(); ++id) {
    const plugin::Node node = graph_.node(id);
    if (!node.domain().empty() || std::find(ops.begin(), ops.end(), node.op()) == ops.end()) {
      continue;
    }
    try {
      offer(node);
    } catch (const std::exception& exception) {
      refuse(id, exception.what());
    }
  }
}

void Context::report_refusals() {
  for (int32_t id = 0; id < graph_.node_count(); ++id) {
    if (taken_.contains(id)) continue;
    const auto found = reasons_.find(id);
    proposals_.refuse(
        id, found != reasons_.end() ? found->second : "oneDNN has no primitive for this op");
  }
}

}  // namespace tessera::onednn
