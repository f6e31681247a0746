// Proposing op by op: what a backend with several families of kernels works with while it offers
// candidates. Included by tessera/backend.h, which authors include.
//
//   void propose(const Graph& graph, const ProposeOptions& options, Proposals& proposals) override
//   {
//     ProposeContext context(graph, options, proposals);
//     context.for_each({"MatMul", "Gemm"}, [&](const Node& node) { offer_product(context, node);
//     }); context.report_refusals("there is no kernel for this op");
//   }
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/backend_graph.h"
#include "tessera/backend_offer.h"

namespace tessera::plugin {

// The node, of ONNX's own domain, that alone reads `value`, which nobody else needs: what a fused
// kernel can take along.
inline std::optional<Node> only_reader(const Graph& graph, const Value& value) {
  if (!value.is_present() || value.is_needed() || value.consumers().size() != 1) {
    return std::nullopt;
  }
  const Node node = graph.node(value.consumers().front());
  if (!node.domain().empty()) return std::nullopt;
  return node;
}

// The place of `value` among the candidate's inputs, where it is put if it is not there; -1 where
// it is absent. Throws Failure where it is there in another format.
inline int32_t input_port(Candidate& candidate, const Value& value,
                          std::optional<Pack> pack = std::nullopt) {
  if (!value.is_present()) return -1;
  for (size_t index = 0; index < candidate.inputs.size(); ++index) {
    if (candidate.inputs[index].value != value.id()) continue;
    if (pack || candidate.inputs[index].pack) {
      throw Failure(TESSERA_UNSUPPORTED, "needs '" + value.name() + "' in two formats");
    }
    return static_cast<int32_t>(index);
  }
  candidate.inputs.push_back({.value = value.id(), .pack = std::move(pack)});
  return static_cast<int32_t>(candidate.inputs.size() - 1);
}

// Puts `value` behind the candidate's outputs and gives its place; -1 where it is absent.
inline int32_t output_port(Candidate& candidate, const Value& value) {
  if (!value.is_present()) return -1;
  candidate.outputs.push_back({.value = value.id()});
  return static_cast<int32_t>(candidate.outputs.size() - 1);
}

// One call of Backend::propose(), whose arguments must outlive it. Refusals wait until the end, so
// that a node that one family refuses and another one takes is not refused.
class ProposeContext {
 public:
  ProposeContext(const Graph& graph, const ProposeOptions& options, Proposals& proposals)
      : graph_(graph), options_(options), proposals_(proposals) {
    if (!options.wanted) return;
    for (const Wanted& wanted : *options.wanted) {
      wanted_nodes_.insert(wanted.nodes.begin(), wanted.nodes.end());
      wanted_[wanted.nodes].push_back(&wanted);
    }
  }

  const Graph& graph() const { return graph_; }
  const ProposeOptions& options() const { return options_; }

  // For Candidate::optimistic_seconds of kernels on the processor: the least time in which these
  // threads could do so many operations and move so many bytes. The choice without measured costs
  // compares such estimates of different backends, which must be in the same units for that.
  double optimistic_seconds(double flops, double bytes) const {
    // Above what a core does at its best: two fused multiply-adds of 16 lanes a cycle at 4 GHz, and
    // what one core reads from memory, where most of a large model's tensors are.
    constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9;
    constexpr double kBytesPerSecond = 20e9;
    const double threads = std::max(options_.threads, 1);
    return std::max(flops / (kFlopsPerSecond * threads), bytes / kBytesPerSecond);
  }

  // Whether some candidate for this node may be of use; whether one for just these nodes
  // (ascending) may be, perhaps with this algorithm. All are, but where the plan is known already:
  // then a backend need not look at the rest, which add() would drop.
  bool is_wanted(const Node& node) const {
    return !options_.wanted || wanted_nodes_.contains(node.id());
  }
  bool is_wanted(const std::vector<int32_t>& nodes) const {
    return !options_.wanted || wanted_.contains(nodes);
  }
  bool is_wanted(const std::vector<int32_t>& nodes, const std::string& algorithm) const {
    if (!options_.wanted) return true;
    return std::ranges::any_of(
        wanted_for(nodes), [&](const Wanted* wanted) { return wanted->algorithm == algorithm; });
  }
  // What is asked for with just these nodes (ascending); empty where everything is of use.
  std::span<const Wanted* const> wanted_for(const std::vector<int32_t>& nodes) const {
    const auto found = wanted_.find(nodes);
    return found == wanted_.end() ? std::span<const Wanted* const>() : found->second;
  }

  // Hands a candidate over. Its nodes count as taken.
  void add(Candidate candidate) {
    if (!is_wanted(candidate.nodes, candidate.algorithm)) return;
    taken_.insert(candidate.nodes.begin(), candidate.nodes.end());
    proposals_.add(std::move(candidate));
  }

  // Why `node` alone cannot be computed. The first reason stands, unless a candidate is added.
  void refuse(int32_t node, const std::string& reason) { reasons_.try_emplace(node, reason); }

  // Calls `offer` for every node of use whose op is among `ops` (of ONNX's own domain). What it
  // throws becomes the node's refusal.
  void for_each(std::initializer_list<std::string_view> ops,
                const std::function<void(const Node& node)>& offer) {
    for (const Node& node : graph_.nodes()) {
      if (!node.domain().empty() || std::find(ops.begin(), ops.end(), node.op()) == ops.end()) {
        continue;
      }
      if (!is_wanted(node)) continue;
      try {
        offer(node);
      } catch (const std::exception& exception) {
        refuse(node.id(), exception.what());
      }
    }
  }

  // Tells the host of every node that nobody took: the reason given for it, or `otherwise`. Last.
  void report_refusals(const std::string& otherwise) {
    if (options_.wanted) return;
    for (int32_t node = 0; node < graph_.node_count(); ++node) {
      if (taken_.contains(node)) continue;
      const auto found = reasons_.find(node);
      proposals_.refuse(node, found == reasons_.end() ? otherwise : found->second);
    }
  }

 private:
  const Graph& graph_;
  const ProposeOptions& options_;
  Proposals& proposals_;
  std::set<int32_t> wanted_nodes_;
  std::map<std::vector<int32_t>, std::vector<const Wanted*>> wanted_;  // by nodes
  std::set<int32_t> taken_;
  std::map<int32_t, std::string> reasons_;
};

}  // namespace tessera::plugin
