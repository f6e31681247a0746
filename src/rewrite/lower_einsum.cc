#include "rewrite/passes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "ops/matmul/einsum_equation.h"
#include "ops/schema.h"
#include "ops/shape_rules.h"

namespace tessera {
namespace {

constexpr int kOpset = 13;  // of the new nodes

using Indices = std::vector<int>;

bool contains(const Indices& indices, int index) {
  return std::ranges::find(indices, index) != indices.end();
}

bool is_distinct(const Indices& indices) {
  return std::set<int>(indices.begin(), indices.end()).size() == indices.size();
}

Indices joined(std::initializer_list<Indices> parts) {
  Indices all;
  for (const Indices& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// An operand, and the index of each of its axes.
struct Operand {
  ValueId value;
  Indices indices;
};

// The indices of a product by what they are there.
struct Roles {
  Indices batch;    // of both and the result
  Indices rows;     // of the left and the result
  Indices columns;  // of the right and the result
  Indices depth;    // of both, summed over
};

// nullopt if an index of one input alone is summed over.
std::optional<Roles> roles_of(const Indices& left, const Indices& right, const Indices& output) {
  Roles roles;
  for (const int index : output) {
    const bool is_left = contains(left, index);
    const bool is_right = contains(right, index);
    (is_left && is_right ? roles.batch : is_left ? roles.rows : roles.columns).push_back(index);
  }
  for (const int index : left) {
    if (contains(output, index)) continue;
    if (!contains(right, index)) return std::nullopt;
    roles.depth.push_back(index);
  }
  for (const int index : right) {
    if (!contains(output, index) && !contains(left, index)) return std::nullopt;
  }
  return roles;
}

class Lowering {
 public:
  Lowering(Graph graph, const PassContext& context) : graph_(std::move(graph)), context_(context) {
    for (const Value& value : graph_.values) value_names_.insert(value.name);
    for (const Node& node : graph_.nodes) node_names_.insert(node.name);
  }

  Graph run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      if (node.domain.empty() && node.op == "Einsum" && lower(node)) continue;
      graph_.nodes.push_back(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  // False if the node stays.
  bool lower(const Node& node) {
    lengths_.clear();
    if (node.inputs.size() != 2 || graph_[node.outputs[0]].is_state) return false;
    const ops::Op& product = *context_.registry.find("", "MatMul");
    const DataType element = graph_[node.inputs[0]].type.element;
    if (!product.type_variables[0].types.contains(element)) return false;
    std::vector<int64_t> ranks;
    for (const ValueId id : node.inputs) {
      const std::optional<Shape>& shape = graph_[id].type.shape;
      if (!shape || graph_[id].is_state) return false;
      ranks.push_back(static_cast<int64_t>(shape->size()));
    }
    ops::EinsumEquation equation;
    if (!ops::read_einsum(node.attributes.get_string("equation"), ranks, equation).empty()) {
      return false;
    }
    Operand left{node.inputs[0], {equation.operands[0].begin(), equation.operands[0].end()}};
    Operand right{node.inputs[1], {equation.operands[1].begin(), equation.operands[1].end()}};
    const Indices output(equation.output.begin(), equation.output.end());
    if (!is_distinct(left.indices) || !is_distinct(right.indices)) return false;
    // Then the result need not be transposed.
    if (!output.empty() && !contains(right.indices, output.back())) std::swap(left, right);
    const std::optional<Roles> roles = roles_of(left.indices, right.indices, output);
    if (!roles || !read_lengths(left) || !read_lengths(right)) return false;
    return multiply(node, left, right, *roles, output);
  }

  // Notes the length of each index; false if one is 0 or differs from that of the other input.
  bool read_lengths(const Operand& operand) {
    const Shape& shape = *graph_[operand.value].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == Dim(0)) return false;
      const int index = operand.indices[axis];
      if (!lengths_.try_emplace(index, shape[axis]).second && lengths_.at(index) != shape[axis]) {
        return false;
      }
    }
    return true;
  }

  Shape shape_of(const Indices& indices) const {
    Shape shape;
    for (const int index : indices) shape.push_back(lengths_.at(index));
    return shape;
  }

  bool multiply(const Node& node, const Operand& left, const Operand& right, const Roles& roles,
                const Indices& output) {
    const auto is_single = [](const Indices& indices) { return indices.size() == 1; };
    // MatMul takes any number of axes of rows if the right side is one matrix.
    const bool keeps_rows = roles.batch.empty() && !roles.rows.empty() &&
                            is_single(roles.columns) && is_single(roles.depth);
    const bool is_plain = is_single(roles.depth) && (keeps_rows || is_single(roles.rows));
    const Shape batch = shape_of(roles.batch);
    const Shape rows = shape_of(roles.rows);
    const Shape columns = shape_of(roles.columns);
    const Shape depth = shape_of(roles.depth);
    const auto left_target = target_of(batch.size(), {{rows, true}, {depth, true}});
    const auto right_target = target_of(batch.size(), {{depth, true}, {columns, true}});
    const auto result_target = target_of(batch.size(), {{rows, false}, {columns, false}});
    const bool is_right_plain = is_single(roles.depth) && is_single(roles.columns);
    const bool is_result_plain = is_single(roles.columns) && (keeps_rows || is_single(roles.rows));
    if ((!is_plain && !left_target) || (!is_right_plain && !right_target) ||
        (!is_result_plain && !result_target)) {
      return false;
    }
    node_ = &node;
    ValueId a = transposed(left, joined({roles.batch, roles.rows, roles.depth}), "left");
    if (!is_plain) {
      a = reshaped(a, *left_target, batch, {ops::product(rows), ops::product(depth)}, "left");
    }
    ValueId b = transposed(right, joined({roles.batch, roles.depth, roles.columns}), "right");
    if (!is_right_plain) {
      b = reshaped(b, *right_target, batch, {ops::product(depth), ops::product(columns)}, "right");
    }
    const Indices made = joined({roles.batch, roles.rows, roles.columns});
    const bool is_ordered = made == output;
    Shape product = is_result_plain ? shape_of(made) : batch;
    if (!is_result_plain) {
      product.insert(product.end(), {ops::product(rows), ops::product(columns)});
    }
    ValueId result = add_node("MatMul", {a, b}, product, "", {}, is_result_plain && is_ordered);
    if (!is_result_plain) {
      result = add_node("Reshape", {result, constant(*result_target, "shape")}, shape_of(made),
                        "shape", {}, is_ordered);
    }
    if (!is_ordered) {
      add_node("Transpose", {result}, shape_of(output), "order", permutation(made, output), true);
    }
    context_.changes.push_back(location_of(node) + " computed by a MatMul");
    return true;
  }

  // The target of a Reshape: the batch stays, then each group is one axis if it is merged, or
  // becomes its axes again. nullopt if more than one length is unknown.
  struct Group {
    Shape lengths;
    bool is_merged = false;
  };
  static std::optional<std::vector<int64_t>> target_of(size_t batch,
                                                       const std::vector<Group>& groups) {
    std::vector<int64_t> target(batch, 0);
    for (const Group& group : groups) {
      Shape lengths = group.lengths;
      if (group.is_merged) lengths = {ops::product(group.lengths)};
      for (const Dim& length : lengths) target.push_back(length.is_known() ? length.value() : -1);
    }
    if (std::ranges::count(target, -1) > 1) return std::nullopt;
    return target;
  }

  static Attributes permutation(const Indices& from, const Indices& to) {
    std::vector<int64_t> axes;
    for (const int index : to) axes.push_back(std::ranges::find(from, index) - from.begin());
    Attributes attributes;
    attributes.set("perm", axes);
    return attributes;
  }

  ValueId transposed(const Operand& from, const Indices& to, const std::string& suffix) {
    if (from.indices == to) return from.value;
    return add_node("Transpose", {from.value}, shape_of(to), suffix, permutation(from.indices, to));
  }

  ValueId reshaped(ValueId from, const std::vector<int64_t>& target, Shape shape,
                   std::initializer_list<Dim> rest, const std::string& suffix) {
    shape.insert(shape.end(), rest);
    return add_node("Reshape", {from, constant(target, suffix + "_shape")}, shape,
                    suffix + "_matrix");
  }

  ValueId constant(const std::vector<int64_t>& elements, const std::string& suffix) {
    const Tensor tensor =
        Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(elements.size())}, elements);
    Value value;
    value.name = unused(value_names_, node_->name + "_" + suffix);
    value.type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
    value.constant = tensor;
    return add_value(graph_, std::move(value));
  }

  // The MatMul has the name of the Einsum, so pins of that name hold.
  ValueId add_node(const std::string& op, std::vector<ValueId> inputs, const Shape& shape,
                   const std::string& suffix, Attributes attributes = {}, bool is_last = false) {
    const ops::Op& found = *context_.registry.find("", op);
    Node made;
    made.name = suffix.empty() ? node_->name : unused(node_names_, node_->name + "_" + suffix);
    made.op = op;
    made.version = ops::version_in(found, kOpset).value();
    made.attributes = std::move(attributes);
    made.inputs = std::move(inputs);
    made.metadata = node_->metadata;
    ValueId output = node_->outputs[0];
    if (!is_last) {
      Value value;
      value.name = unused(value_names_, made.name + "_value");
      value.type = Type::tensor(graph_[output].type.element, shape);
      output = add_value(graph_, std::move(value));
    }
    made.outputs = {output};
    ops::complete(found, made);
    graph_.nodes.push_back(std::move(made));
    return output;
  }

  static std::string unused(std::unordered_set<std::string>& names, const std::string& wanted) {
    std::string name = wanted;
    for (int number = 2; !names.insert(name).second; ++number) {
      name = wanted + "_" + std::to_string(number);
    }
    return name;
  }

  Graph graph_;
  const PassContext& context_;
  std::unordered_set<std::string> value_names_;
  std::unordered_set<std::string> node_names_;
  std::map<int, Dim> lengths_;  // of the indices of the node in hand
  const Node* node_ = nullptr;
};

}  // namespace

Graph lower_einsum(Graph graph, const PassContext& context) {
  const bool has_any = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return node.domain.empty() && node.op == "Einsum"; });
  return has_any ? Lowering(std::move(graph), context).run() : graph;
}

}  // namespace tessera
