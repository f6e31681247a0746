#include "rewrite/passes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/errors/check.h"

namespace tessera {
namespace {

constexpr int kFirstDropoutWithoutIsTest = 7;
constexpr int kFirstDropoutWithTrainingInput = 12;

// A predicate on a node of `graph` whose first output and first input are present.
using Question = bool (*)(const Graph& graph, const Node& node);

const Type& input_type(const Graph& graph, const Node& node) { return graph[node.inputs[0]].type; }
const Type& output_type(const Graph& graph, const Node& node) {
  return graph[node.outputs[0]].type;
}

bool is_always_identity(const Graph&, const Node&) { return true; }

bool is_not_training(const Graph& graph, const Node& node) {
  if (node.version < kFirstDropoutWithoutIsTest) {
    const int64_t* is_test = node.attributes.find_int("is_test");
    return is_test != nullptr && *is_test != 0;
  }
  if (node.version < kFirstDropoutWithTrainingInput) return true;
  if (node.inputs.size() < 3 || node.inputs[2].is_none()) return true;
  const Tensor& mode = graph[node.inputs[2]].constant;
  return mode.type() == DataType::Bool && mode.elements() == 1 && mode.as<uint8_t>()[0] == 0;
}

bool keeps_element_type(const Graph& graph, const Node& node) {
  const DataType element = input_type(graph, node).element;
  return element != DataType::Undefined && element == output_type(graph, node).element;
}

bool keeps_order_of_axes(const Graph& graph, const Node& node) {
  const std::vector<int64_t>* order = node.attributes.find_ints("perm");
  if (order == nullptr) {
    // The default permutation reverses the axes.
    const Type& type = input_type(graph, node);
    return type.shape && type.shape->size() < 2;
  }
  for (size_t axis = 0; axis < order->size(); ++axis) {
    if ((*order)[axis] != static_cast<int64_t>(axis)) return false;
  }
  // A mismatched rank is an error that is found only at run time.
  const Type& type = input_type(graph, node);
  return type.shape && type.shape->size() == order->size();
}

// For values that the caller may provide, the declared shape is a claim, not a fact.
bool keeps_known_shape(const Graph& graph, const Node& node) {
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    if (node.inputs[index].is_none()) continue;
    const Value& list = graph[node.inputs[index]];
    if (!list.is_constant() && !(list.elements && is_known(*list.elements))) return false;
  }
  const Type& type = input_type(graph, node);
  return type.is_known_tensor() && type == output_type(graph, node);
}

struct Rule {
  std::string_view op;
  Question is_identity;
};

constexpr Rule kRules[] = {
    {"Cast", keeps_element_type},     {"Dropout", is_not_training},
    {"Expand", keeps_known_shape},    {"Flatten", keeps_known_shape},
    {"Identity", is_always_identity}, {"Reshape", keeps_known_shape},
    {"Squeeze", keeps_known_shape},   {"Transpose", keeps_order_of_axes},
    {"Unsqueeze", keeps_known_shape},
};

// Collects replacements of values and applies them to the whole graph at once, so that the pass
// stays linear.
class Replacements {
 public:
  explicit Replacements(const Graph& graph) : targets_(graph.values.size()) {}

  // From now on of(from) is of(to). `from` must not already be a replacement of `to`.
  void add(ValueId from, ValueId to) {
    TESSERA_CHECK(of(to) != from, "a value that stands in for itself would never be found");
    targets_[static_cast<size_t>(from.index)] = to;
  }

  // The replacement of `id`; `id` itself if there is none.
  ValueId of(ValueId id) const {
    while (!id.is_none() && !targets_[static_cast<size_t>(id.index)].is_none()) {
      id = targets_[static_cast<size_t>(id.index)];
    }
    return id;
  }

  // Redirects every reader to the replacement, and every remaining node to write it.
  void apply(Graph& graph) const {
    for (Node& node : graph.nodes) {
      if (node.is_removed) continue;
      for (ValueId& id : node.inputs) id = of(id);
      for (ValueId& id : node.outputs) id = of(id);
      for (Body& body : node.bodies) {
        for (Capture& capture : body.graph.captures) capture.outer = of(capture.outer);
      }
    }
    for (ValueId& id : graph.outputs) id = of(id);
    for (ValueId& id : graph.kept) id = of(id);
  }

 private:
  std::vector<ValueId> targets_;
};

class IdentityRemoval {
 public:
  explicit IdentityRemoval(Graph graph)
      : graph_(std::move(graph)),
        replacements_(graph_),
        uses_(use_counts(graph_)),
        is_made_by_node_(graph_.values.size(), false),
        must_keep_name_(graph_.values.size(), false) {
    for (const ValueId id : graph_.outputs) must_keep_name_[static_cast<size_t>(id.index)] = true;
    for (const ValueId id : graph_.kept) must_keep_name_[static_cast<size_t>(id.index)] = true;
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : node.outputs) {
        if (!id.is_none()) is_made_by_node_[static_cast<size_t>(id.index)] = true;
      }
    }
  }

  Graph run(const PassContext& context) {
    for (Node& node : graph_.nodes) {
      if (!is_identity(node) || !take_out(node.inputs[0], node.outputs[0])) continue;
      node.is_removed = true;
      context.changes.push_back(location_of(node) + " removed: it changes nothing");
    }
    replacements_.apply(graph_);
    return std::move(graph_);
  }

 private:
  bool is_identity(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0].is_none()) return false;
    if (node.outputs.empty() || node.outputs[0].is_none()) return false;
    for (size_t index = 1; index < node.outputs.size(); ++index) {
      const ValueId id = node.outputs[index];
      if (!id.is_none() && uses_[static_cast<size_t>(id.index)] > 0) return false;
    }
    const auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                    [&](const Rule& each) { return each.op == node.op; });
    return rule != std::end(kRules) && rule->is_identity(graph_, node);
  }

  // Merges the two names into one value; false if both names must be kept.
  bool take_out(ValueId read, ValueId made) {
    const ValueId source = replacements_.of(read);
    if (graph_[source].is_state || graph_[made].is_state) return false;
    if (!must_keep_name_[static_cast<size_t>(made.index)]) {
      replacements_.add(made, source);
      return true;
    }
    const auto index = static_cast<size_t>(source.index);
    if (must_keep_name_[index] || !is_made_by_node_[index]) return false;
    // Lets the node that made `source` make `made` directly.
    replacements_.add(source, made);
    return true;
  }

  Graph graph_;
  Replacements replacements_;
  std::vector<int> uses_;
  std::vector<bool> is_made_by_node_;
  std::vector<bool> must_keep_name_;
};

}  // namespace

Graph remove_identities(Graph graph, const PassContext& context) {
  return IdentityRemoval(std::move(graph)).run(context);
}

}  // namespace tessera
