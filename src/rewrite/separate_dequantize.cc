#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "rewrite/passes.h"
#include "rewrite/unique_names.h"

namespace tessera {
namespace {

bool is_of_quantisation(const Node& node, std::string_view op) {
  return node.op == op && (node.domain.empty() || node.domain == "com.microsoft");
}

// Products, which kernels compute with integers whatever follows.
bool is_product_of_integers(const Node& node) {
  constexpr std::array<std::string_view, 4> kOps = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  return node.domain.empty() && std::ranges::find(kOps, node.op) != kOps.end();
}

bool is_limiting(const Node& node) { return is_op(node, "Relu") || is_op(node, "Clip"); }

class Separation {
 public:
  Separation(Graph graph, const PassContext& context)
      : graph_(std::move(graph)),
        context_(context),
        uses_(use_counts(graph_)),
        readers_(graph_.values.size()) {
    for (const Value& value : graph_.values) value_names_.take(value.name);
    for (size_t number = 0; number < graph_.nodes.size(); ++number) {
      const Node& node = graph_.nodes[number];
      node_names_.take(node.name);
      for (const ValueId id : node.inputs) {
        if (id.is_none()) continue;
        std::vector<size_t>& readers = readers_[at(id)];
        if (readers.empty() || readers.back() != number) readers.push_back(number);
      }
    }
  }

  Graph run() {
    std::vector<std::pair<size_t, Node>> copies;  // with the node after which each is inserted
    const size_t count = graph_.nodes.size();
    for (size_t number = 0; number < count; ++number) {
      if (!is_of_quantisation(graph_.nodes[number], "DequantizeLinear")) continue;
      for (Node& copy : separate(number)) copies.emplace_back(number, std::move(copy));
    }
    std::vector<Node> nodes = std::exchange(graph_.nodes, {});
    auto next = copies.begin();
    for (size_t number = 0; number < count; ++number) {
      graph_.nodes.push_back(std::move(nodes[number]));
      for (; next != copies.end() && next->first == number; ++next) {
        graph_.nodes.push_back(std::move(next->second));
      }
    }
    return std::move(graph_);
  }

 private:
  static size_t at(ValueId id) { return static_cast<size_t>(id.index); }

  // The only node that reads the first output of `node`, and nothing else does; null if none.
  const Node* only_reader(const Node& node) const {
    const ValueId output = node.outputs.empty() ? ValueId{} : node.outputs[0];
    if (output.is_none() || uses_[at(output)] != 1 || readers_[at(output)].size() != 1) {
      return nullptr;
    }
    return &graph_.nodes[readers_[at(output)][0]];
  }

  // Whether a kernel may compute the node with integers.
  bool may_be_quantised(const Node& node) const {
    if (is_product_of_integers(node)) return true;
    const Node* next = only_reader(node);
    if (next != nullptr && is_limiting(*next)) next = only_reader(*next);
    return next != nullptr && is_of_quantisation(*next, "QuantizeLinear");
  }

  // Copies of a DequantizeLinear, one for each quantised reader but the last one that could have
  // the node itself.
  std::vector<Node> separate(size_t number) {
    const ValueId real = graph_.nodes[number].outputs[0];
    std::vector<Node> copies;
    if (real.is_none() || graph_[real].is_state || uses_[at(real)] < 2) return copies;
    const std::vector<size_t>& readers = readers_[at(real)];
    std::vector<size_t> quantised;
    for (const size_t reader : readers) {
      if (may_be_quantised(graph_.nodes[reader])) quantised.push_back(reader);
    }
    int reads = 0;
    for (const size_t reader : readers) {
      reads += static_cast<int>(std::ranges::count(graph_.nodes[reader].inputs, real));
    }
    // An output, a kept value or a nested graph reads it too, or a node that needs real numbers.
    const bool is_read_otherwise = reads != uses_[at(real)] || quantised.size() != readers.size();
    if (!is_read_otherwise && !quantised.empty()) quantised.pop_back();
    for (const size_t reader : quantised) copies.push_back(copy_for(number, reader));
    return copies;
  }

  Node copy_for(size_t number, size_t reader) {
    Node copy = graph_.nodes[number];
    const ValueId real = copy.outputs[0];
    Value value;
    value.name = value_names_.make(graph_[real].name + ".copy", "separate");
    value.type = graph_[real].type;
    const ValueId made = add_value(graph_, std::move(value));
    copy.name = node_names_.make(copy.name + ".copy", "separate");
    copy.outputs = {made};
    Node& node = graph_.nodes[reader];
    std::ranges::replace(node.inputs, real, made);
    context_.changes.push_back(location_of(graph_.nodes[number]) + " copied for " +
                               location_of(node));
    return copy;
  }

  Graph graph_;
  const PassContext& context_;
  std::vector<int> uses_;
  std::vector<std::vector<size_t>> readers_;  // by value: nodes, ascending
  UniqueNames value_names_;
  UniqueNames node_names_;
};

}  // namespace

Graph separate_dequantize(Graph graph, const PassContext& context) {
  const bool has_any = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return is_of_quantisation(node, "DequantizeLinear"); });
  return has_any ? Separation(std::move(graph), context).run() : std::move(graph);
}

}  // namespace tessera
