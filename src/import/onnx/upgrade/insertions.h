// Adds nodes and constants to a graph while it is read: for nodes of old versions, some of which
// become several nodes (upgrade.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

class Insertions {
 public:
  using ChooseName = std::function<std::string(const std::string& name)>;

  // Graph and registry must outlive this object. `choose_node_name` makes a name unique among the
  // graph's nodes.
  Insertions(Graph& graph, const ops::Registry& registry, ChooseName choose_node_name)
      : graph_(graph), registry_(registry), choose_node_name_(std::move(choose_node_name)) {}

  const ops::Registry& registry() const { return registry_; }

  ValueId add_constant(const std::string& name, Tensor elements);
  // Appends a node with one output of the same name. Checks the node and adds the defaults of its
  // attributes.
  ValueId add_node(Node node);

  // The elements of an initializer or of a Constant node of this graph; nullptr for other values.
  const Tensor* constant_of(ValueId id);
  // Float32, the only type of most old versions, if the file does not tell the element type.
  DataType element_of(ValueId id);

  // Gives the added values names for which `is_taken` is false, once all nodes have been read.
  void name_values(const std::function<bool(const std::string& name)>& is_taken);

 private:
  // The node that makes a value; none() for inputs and constants.
  NodeId producer_of(ValueId id);
  // What is known about the type of a value without its producer.
  DataType declared_element_of(ValueId id) const;
  // The input whose element type is that of output `id` of `node`; none() if there is none.
  ValueId typing_input(const Node& node, ValueId id) const;

  Graph& graph_;
  const ops::Registry& registry_;
  ChooseName choose_node_name_;
  std::vector<ValueId> added_;
  std::map<ValueId, NodeId> producers_;
  size_t nodes_seen_ = 0;  // of graph_.nodes, for producers_
  std::map<ValueId, DataType> elements_;
};

}  // namespace tessera::onnx_import
