#include "export/onnx/opsets.h"

#include <algorithm>

#include "tessera/error.h"

namespace tessera::onnx_export {
namespace {

constexpr int kPreferredOpset = 13;

// The operator sets that fit all nodes seen so far, and the nodes that determined the bounds.
struct Range {
  int first = 1;
  int last = ops::kAnyVersion;
  const Node* first_node = nullptr;
  const Node* last_node = nullptr;
};

// The last operator set for which the node's version is the newest.
int last_opset(const Node& node, const ops::Registry& registry) {
  const ops::Op* op = registry.find(node.domain, node.op);
  if (op == nullptr) return ops::kAnyVersion;
  const auto next = std::ranges::upper_bound(op->versions, node.version);
  const int before_next = next == op->versions.end() ? ops::kAnyVersion : *next - 1;
  return std::min(before_next, op->last_version);
}

[[noreturn]] void fail(const Range& range, const std::string& domain) {
  const auto version = [](const Node& node) {
    return location_of(node) + " of version " + std::to_string(node.version);
  };
  throw Error(ErrorKind::Unsupported, location_of(*range.first_node),
              "an ONNX file has one operator set for each domain, but none of '" +
                  (domain.empty() ? "ai.onnx" : domain) + "' contains both " +
                  version(*range.first_node) + " (in sets from " + std::to_string(range.first) +
                  " on) and " + version(*range.last_node) + " (in sets up to " +
                  std::to_string(range.last) + ")");
}

void narrow(const Graph& graph, const ops::Registry& registry,
            std::map<std::string, Range>& ranges) {
  for (const Node& node : graph.nodes) {
    Range& range = ranges[node.domain];
    if (node.version > range.first || range.first_node == nullptr) {
      range.first = std::max(range.first, node.version);
      range.first_node = &node;
    }
    const int last = last_opset(node, registry);
    if (last < range.last || range.last_node == nullptr) {
      range.last = std::min(range.last, last);
      range.last_node = &node;
    }
    if (range.first > range.last) fail(range, node.domain);
    for (const Body& body : node.bodies) narrow(body.graph, registry, ranges);
  }
}

}  // namespace

std::map<std::string, int> choose_opsets(const Graph& graph, const ops::Registry& registry) {
  std::map<std::string, Range> ranges;
  ranges[""].first = ops::kOldestOpset;
  ranges[""].last = ops::kNewestOpset;
  narrow(graph, registry, ranges);
  std::map<std::string, int> opsets;
  for (const auto& [domain, range] : ranges) {
    opsets[domain] =
        domain.empty() ? std::clamp(kPreferredOpset, range.first, range.last) : range.first;
  }
  return opsets;
}

}  // namespace tessera::onnx_export
