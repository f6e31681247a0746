// Writes the nodes that replace one node of a graph.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewrite/pipeline.h"

namespace tessera {

// Nodes in place of one node. They get their types from the rules of their ops, and become part of
// the graph when the replacement is complete. Throws what the rules throw.
class NodeBuilder {
 public:
  // `graph` has the values of `replaced`, and of the nodes before it.
  NodeBuilder(Graph& graph, const ops::Registry& registry);

  // Begins the replacement of `replaced`, and drops what was not committed.
  void begin(const Node& replaced);
  // Appends the nodes to the graph.
  void commit();

  const Node& replaced() const { return *replaced_; }
  bool has_input(size_t index) const;
  ValueId input(size_t index) const { return replaced_->inputs[index]; }
  bool has_output(size_t index) const;
  const Type& type_of(ValueId id) const { return graph_[id].type; }
  DataType element_of(ValueId id) const { return graph_[id].type.element; }
  // -1 if it is unknown.
  int64_t rank_of(ValueId id) const;
  // The elements of a small integer tensor; nullopt if one of them is unknown.
  std::optional<std::vector<int64_t>> integers_of(ValueId id) const;

  // The first output of a new node of ONNX's own domain, in its newest version.
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return add(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  // All of its `count` outputs.
  std::vector<ValueId> add(const std::string& op, std::vector<ValueId> inputs, size_t count,
                           Attributes attributes = {});

  // All outputs of a node like the replaced one, in its version, with other inputs.
  std::vector<ValueId> repeat(std::vector<ValueId> inputs);
  // All outputs of a node like `node` of a graph that is nested in the replaced one, with inputs of
  // this graph. It keeps its name if that is free.
  std::vector<ValueId> copy(const Node& node, std::vector<ValueId> inputs);

  ValueId constant(Tensor tensor);
  // A constant like that of another graph.
  ValueId copy(Value constant);
  ValueId integers(const std::vector<int64_t>& elements);  // a list of int64
  // One number of the element type of `like`.
  ValueId number(double number, ValueId like);

  // `id` is output `index` of the replaced node; nothing if that is omitted.
  void give(size_t index, ValueId id);
  // The new node that makes `id` gets the name of the replaced one, so pins of that name hold.
  // Without a call, the node that makes output 0 gets it.
  void keep_name(ValueId id) { main_ = id; }

  // Whether ONNX's own op takes operands of this type.
  bool has_type(const std::string& op, DataType element) const;

 private:
  std::vector<ValueId> append(const ops::Op& op, Node made, size_t count);
  void place(size_t index, ValueId id);
  ValueId add_value(Type type);
  static std::string unused(std::unordered_set<std::string>& names, const std::string& wanted);

  Graph& graph_;
  const ops::Registry& registry_;
  std::unordered_set<std::string> value_names_;
  std::unordered_set<std::string> node_names_;
  const Node* replaced_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<std::pair<size_t, ValueId>> given_;  // outputs by index
  ValueId main_;                                   // of keep_name()
};

}  // namespace tessera
