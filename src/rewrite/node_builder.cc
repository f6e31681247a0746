#include "rewrite/node_builder.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/errors/check.h"
#include "infer/infer.h"
#include "ops/convert_elements.h"
#include "ops/evaluate.h"
#include "ops/schema.h"

namespace tessera {

NodeBuilder::NodeBuilder(Graph& graph, const ops::Registry& registry)
    : graph_(graph), registry_(registry) {
  for (const Value& value : graph.values) value_names_.insert(value.name);
  for (const Node& node : graph.nodes) node_names_.insert(node.name);
}

void NodeBuilder::begin(const Node& replaced) {
  replaced_ = &replaced;
  node_names_.insert(replaced.name);
  nodes_.clear();
  given_.clear();
  main_ = {};
}

void NodeBuilder::commit() {
  for (Node& node : nodes_) {
    const bool is_main = !main_.is_none() && std::ranges::count(node.outputs, main_) != 0;
    if (is_main) node.name = replaced_->name;
  }
  for (const auto& [output, value] : given_) place(output, value);
  for (Node& node : nodes_) graph_.nodes.push_back(std::move(node));
  nodes_.clear();
  given_.clear();
}

bool NodeBuilder::has_input(size_t index) const {
  return index < replaced_->inputs.size() && !replaced_->inputs[index].is_none();
}

bool NodeBuilder::has_output(size_t index) const {
  return index < replaced_->outputs.size() && !replaced_->outputs[index].is_none();
}

bool NodeBuilder::has_type(const std::string& op, DataType element) const {
  return registry_.find("", op)->type_variables[0].types.contains(element);
}

int64_t NodeBuilder::rank_of(ValueId id) const {
  const std::optional<Shape>& shape = graph_[id].type.shape;
  return shape ? static_cast<int64_t>(shape->size()) : -1;
}

std::optional<std::vector<int64_t>> NodeBuilder::integers_of(ValueId id) const {
  const Tensor& constant = graph_[id].constant;
  if (constant.type() == DataType::Int64) {
    const std::span<const int64_t> found = constant.as<int64_t>();
    return std::vector<int64_t>(found.begin(), found.end());
  }
  const std::optional<std::vector<Dim>>& elements = graph_[id].elements;
  if (!elements) return std::nullopt;
  std::vector<int64_t> integers;
  for (const Dim& element : *elements) {
    if (!element.is_known()) return std::nullopt;
    integers.push_back(element.value());
  }
  return integers;
}

std::vector<ValueId> NodeBuilder::add(const std::string& op, std::vector<ValueId> inputs,
                                      size_t count, Attributes attributes) {
  const ops::Op* found = registry_.find("", op);
  TESSERA_CHECK(found != nullptr, "a replacement consists of known ops");
  Node made;
  made.name = unused(node_names_, replaced_->name + "_" + op);
  made.op = op;
  made.version = ops::version_in(*found, ops::kNewestOpset).value();
  made.attributes = std::move(attributes);
  made.inputs = std::move(inputs);
  made.metadata = replaced_->metadata;
  return append(*found, std::move(made), count);
}

std::vector<ValueId> NodeBuilder::repeat(std::vector<ValueId> inputs) {
  const ops::Op* found = registry_.find(replaced_->domain, replaced_->op);
  TESSERA_CHECK(found != nullptr, "a graph has nodes of known ops");
  Node made = *replaced_;
  made.name = unused(node_names_, replaced_->name + "_" + replaced_->op);
  made.inputs = std::move(inputs);
  made.outputs.clear();
  return append(*found, std::move(made), replaced_->outputs.size());
}

std::vector<ValueId> NodeBuilder::copy(const Node& node, std::vector<ValueId> inputs) {
  const ops::Op* found = registry_.find(node.domain, node.op);
  TESSERA_CHECK(found != nullptr, "a graph has nodes of known ops");
  Node made = node;
  const bool is_free = !node_names_.contains(node.name);
  made.name = unused(node_names_, is_free ? node.name : replaced_->name + "." + node.name);
  made.inputs = std::move(inputs);
  made.outputs.clear();
  append(*found, std::move(made), node.outputs.size());
  std::vector<ValueId>& outputs = nodes_.back().outputs;
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (node.outputs[index].is_none()) outputs[index] = {};
  }
  return outputs;
}

std::vector<ValueId> NodeBuilder::append(const ops::Op& op, Node made, size_t count) {
  for (size_t index = 0; index < count; ++index) made.outputs.push_back(add_value({}));
  ops::complete(op, made);
  std::vector<ops::InferInput> known;
  for (const ValueId id : made.inputs) known.push_back(infer_input(graph_, id));
  std::vector<ops::InferOutput> outputs = ops::infer(op, made, std::move(known));
  for (size_t index = 0; index < count; ++index) {
    Value& value = graph_[made.outputs[index]];
    value.type = std::move(outputs[index].type);
    value.elements = std::move(outputs[index].elements);
  }
  nodes_.push_back(std::move(made));
  return nodes_.back().outputs;
}

ValueId NodeBuilder::constant(Tensor tensor) {
  const ValueId id = add_value(Type::tensor(tensor.type(), shape_from(tensor.dims())));
  graph_[id].constant = std::move(tensor);
  return id;
}

ValueId NodeBuilder::copy(Value constant) {
  constant.name = unused(value_names_, replaced_->name + "_value");
  return tessera::add_value(graph_, std::move(constant));
}

ValueId NodeBuilder::integers(const std::vector<int64_t>& elements) {
  return constant(
      Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(elements.size())}, elements));
}

ValueId NodeBuilder::number(double number, ValueId like) {
  Tensor tensor(element_of(like), {});
  ops::convert_elements(DataType::Float64, &number, tensor.type(), tensor.mutable_data(), 1);
  return constant(std::move(tensor));
}

void NodeBuilder::give(size_t index, ValueId id) {
  if (has_output(index)) given_.emplace_back(index, id);
}

// Nodes that were added after give() read the value too, so outputs get their ids at the end.
void NodeBuilder::place(size_t index, ValueId id) {
  const auto makes = [&](const Node& node) { return std::ranges::count(node.outputs, id) != 0; };
  const bool is_given = std::ranges::count(replaced_->outputs, id) != 0;
  if (is_given || std::ranges::none_of(nodes_, makes)) id = add("Identity", {id});
  const ValueId output = replaced_->outputs[index];
  for (Node& node : nodes_) {
    if (main_.is_none() && index == 0 && makes(node)) node.name = replaced_->name;
    std::ranges::replace(node.inputs, id, output);
    std::ranges::replace(node.outputs, id, output);
  }
  for (auto& [other, given] : given_) {
    if (given == id) given = output;
  }
}

ValueId NodeBuilder::add_value(Type type) {
  Value value;
  value.name = unused(value_names_, replaced_->name + "_value");
  value.type = std::move(type);
  return tessera::add_value(graph_, std::move(value));
}

std::string NodeBuilder::unused(std::unordered_set<std::string>& names, const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; !names.insert(name).second; ++number) {
    name = wanted + "_" + std::to_string(number);
  }
  return name;
}

}  // namespace tessera
