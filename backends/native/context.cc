#include "context.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tessera::native {

namespace {

// Above what a core does at its best: two fused multiply-adds of 16 lanes a cycle at 4 GHz, and
// what one core reads from memory, where most of a large model's tensors are.
constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9;
constexpr double kBytesPerSecond = 20e9;

}  // namespace

double Context::optimistic_seconds(double flops, double bytes) const {
  const double threads = std::max(options_.threads, 1);
  return std::max(flops / (kFlopsPerSecond * threads), bytes / kBytesPerSecond);
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
        id, found != reasons_.end() ? found->second : "there is no native kernel for this op");
  }
}

}  // namespace tessera::native
