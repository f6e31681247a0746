// Helps a backend with several families of kernels to offer candidates op by op. Included by
// tessera/backend.h, which authors include.
//
//   void propose(const Graph& graph, const ProposeOptions& options,
//                Proposals& proposals) override {
//     ProposeContext context(graph, options, proposals);
//     context.for_each({"MatMul", "Gemm"}, [&](const Node& node) { offer_matmul(context, node); });
//     context.report_refusals("there is no kernel for this op");
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

// Returns the only node that reads `value`, if nothing else needs the value and the node is of
// ONNX's own domain: a fused kernel can include this node.
inline std::optional<Node> only_reader(const Graph& graph, const Value& value) {
  if (!value.is_present() || value.is_needed() || value.consumers().size() != 1) {
    return std::nullopt;
  }
  const Node node = graph.node(value.consumers().front());
  if (!node.domain().empty()) return std::nullopt;
  return node;
}

// Returns the index of the candidate's input port for `value`, and adds a port if there is none; -1
// if the value is not present. Throws Failure if the existing port or the new one has a pack.
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

// Adds an output port for `value` and returns its index; -1 if the value is not present.
inline int32_t output_port(Candidate& candidate, const Value& value) {
  if (!value.is_present()) return -1;
  candidate.outputs.push_back({.value = value.id()});
  return static_cast<int32_t>(candidate.outputs.size() - 1);
}

// One call of Backend::propose(), whose arguments must outlive it. Refusals are collected until the
// end, because another family of kernels may offer a candidate for a node that one family refused.
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

  // For Candidate::optimistic_seconds of CPU kernels: the minimum time in which these threads could
  // execute that many operations and transfer that many bytes. Without measured prices, the choice
  // compares these estimates between backends, so all backends must use the same assumptions.
  double optimistic_seconds(double flops, double bytes) const {
    // Upper bounds for a core: two fused multiply-adds of 16 lanes a cycle at 4 GHz; and the rate
    // at which one core reads from memory, where most tensors of a large model are.
    constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9;
    constexpr double kBytesPerSecond = 20e9;
    const double threads = std::max(options_.threads, 1);
    return std::max(flops / (kFlopsPerSecond * threads), bytes / kBytesPerSecond);
  }

  // Whether the host considers a candidate for this node; for exactly these nodes (ascending); or
  // for these nodes with this algorithm. Always true unless the plan is known. A backend need not
  // offer candidates for which it is false, because add() drops them.
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
  // The wanted candidates for exactly these nodes (ascending); empty if the plan is not known.
  std::span<const Wanted* const> wanted_for(const std::vector<int32_t>& nodes) const {
    const auto found = wanted_.find(nodes);
    return found == wanted_.end() ? std::span<const Wanted* const>() : found->second;
  }

  // Offers a candidate. Its nodes will not be refused.
  void add(Candidate candidate) {
    if (!is_wanted(candidate.nodes, candidate.algorithm)) return;
    taken_.insert(candidate.nodes.begin(), candidate.nodes.end());
    proposals_.add(std::move(candidate));
  }

  // Refuses `node`. The first reason is reported, unless a candidate for the node is added.
  void refuse(int32_t node, const std::string& reason) { reasons_.try_emplace(node, reason); }

  // Calls `offer` for every wanted node whose op is among `ops` (of ONNX's own domain). If it
  // throws, the text of the exception becomes the reason for refusing the node.
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

  // Reports to the host every node without a candidate, with the reason that refuse() got, or
  // `otherwise`. Does nothing if the plan is known. Call it last.
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
