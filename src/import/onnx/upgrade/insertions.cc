#include "import/onnx/upgrade/insertions.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "import/onnx/wire/element_types.h"
#include "ops/schema.h"

namespace tessera::onnx_import {
namespace {

// The position of `id`; the last one for the further values of a variadic parameter.
const ops::Parameter* parameter_at(const std::vector<ops::Parameter>& parameters, size_t index) {
  return parameters.empty() ? nullptr : &parameters[std::min(index, parameters.size() - 1)];
}

}  // namespace

ValueId Insertions::add_constant(const std::string& name, Tensor elements) {
  Value value;
  value.name = name;
  value.type = Type::tensor(elements.type(), shape_from(elements.dims()));
  value.constant = std::move(elements);
  added_.push_back(add_value(graph_, std::move(value)));
  return added_.back();
}

ValueId Insertions::add_node(Node node) {
  node.name = choose_node_name_(node.name);
  Value value;
  value.name = node.name;
  added_.push_back(add_value(graph_, std::move(value)));
  node.outputs = {added_.back()};
  ops::complete(registry_.of(node), node);
  graph_.nodes.push_back(std::move(node));
  return added_.back();
}

const Tensor* Insertions::constant_of(ValueId id) {
  if (graph_[id].is_constant()) return &graph_[id].constant;
  const NodeId producer = producer_of(id);
  const bool is_constant = !producer.is_none() && is_op(graph_[producer], "Constant");
  return is_constant ? graph_[producer].attributes.find_tensor("value") : nullptr;
}

DataType Insertions::element_of(ValueId id) {
  std::vector<ValueId> path;
  DataType element = DataType::Undefined;
  for (ValueId current = id; !current.is_none();) {
    element = declared_element_of(current);
    if (element != DataType::Undefined) break;
    path.push_back(current);
    const NodeId producer = producer_of(current);
    if (producer.is_none()) break;
    const Node& node = graph_[producer];
    const int64_t* cast = is_op(node, "Cast") ? node.attributes.find_int("to") : nullptr;
    if (cast != nullptr) {
      element = data_type_of(static_cast<int>(*cast)).value_or(DataType::Undefined);
      break;
    }
    if (const Tensor* constant = constant_of(current)) {
      element = constant->type();
      break;
    }
    current = typing_input(node, current);
  }
  if (element == DataType::Undefined) element = DataType::Float32;
  for (const ValueId value : path) elements_[value] = element;
  return element;
}

DataType Insertions::declared_element_of(ValueId id) const {
  const Type& type = graph_[id].type;
  if (type.is_tensor() && type.element != DataType::Undefined) return type.element;
  const auto known = elements_.find(id);
  return known == elements_.end() ? DataType::Undefined : known->second;
}

NodeId Insertions::producer_of(ValueId id) {
  for (; nodes_seen_ < graph_.nodes.size(); ++nodes_seen_) {
    for (const ValueId output : graph_.nodes[nodes_seen_].outputs) {
      if (!output.is_none()) producers_[output] = {static_cast<int32_t>(nodes_seen_)};
    }
  }
  const auto found = producers_.find(id);
  return found == producers_.end() ? NodeId{} : found->second;
}

ValueId Insertions::typing_input(const Node& node, ValueId id) const {
  const ops::Op* op = registry_.find(node.domain, node.op);
  if (op == nullptr) return {};
  const auto position = std::ranges::find(node.outputs, id) - node.outputs.begin();
  const auto outputs = ops::parameters_of(op->outputs, node.version);
  const auto inputs = ops::parameters_of(op->inputs, node.version);
  const ops::Parameter* output = parameter_at(outputs, static_cast<size_t>(position));
  if (output == nullptr) return {};
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    const ops::Parameter* input = parameter_at(inputs, index);
    const bool is_same = input != nullptr && input->type_variable == output->type_variable;
    if (is_same && !node.inputs[index].is_none()) return node.inputs[index];
  }
  return {};
}

void Insertions::name_values(const std::function<bool(const std::string& name)>& is_taken) {
  std::unordered_set<std::string> given;
  for (const ValueId id : added_) {
    const std::string base = graph_[id].name;
    std::string name = base;
    for (int count = 2; is_taken(name) || given.contains(name); ++count) {
      name = base + "#" + std::to_string(count);
    }
    given.insert(name);
    graph_[id].name = std::move(name);
  }
}

}  // namespace tessera::onnx_import
