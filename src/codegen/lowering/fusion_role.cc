#include "codegen/lowering/fusion_role.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "base/errors/check.h"
#include "codegen/lowering/lower_op.h"
#include "ops/convert_elements.h"

namespace tessera::codegen {
namespace {

// tessera_fused_group has 64 bits for axes.
constexpr size_t kMaxRank = 64;
constexpr int64_t kMaxConstantElements = 64;

// --- Views ---------------------------------------------------------------------------------------

bool is_read(const Graph& graph, ValueId value) {
  const auto is_value = [&](ValueId id) { return id == value; };
  const auto reads = [&](const Node& node) {
    if (std::any_of(node.inputs.begin(), node.inputs.end(), is_value)) return true;
    return std::any_of(node.bodies.begin(), node.bodies.end(), [&](const Body& body) {
      return std::any_of(body.graph.captures.begin(), body.graph.captures.end(),
                         [&](const Capture& capture) { return capture.outer == value; });
    });
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), reads) ||
         std::any_of(graph.outputs.begin(), graph.outputs.end(), is_value) ||
         std::any_of(graph.kept.begin(), graph.kept.end(), is_value);
}

std::string place_dropout(const Graph& graph, const Node& node, FusionRole& role) {
  if (node.inputs.size() > 2 && !node.inputs[2].is_none()) {
    const std::optional<Tensor> training = small_constant(graph, node.inputs[2]);
    if (!training) return "'training_mode' is not known before running";
    if (training->elements() == 1 && training->as<uint8_t>()[0] != 0) {
      return "drops elements at random";
    }
  }
  return place_first(graph, node, role);
}

constexpr FusionRow kViewRows[] = {
    {"Dropout", FusionKind::View, ops::kFloatTypes, nullptr, place_dropout},
    {"Flatten", FusionKind::View, ops::kAllTypes, nullptr, place_first},
    {"Identity", FusionKind::View, ops::kAllTypes, nullptr, place_first},
    {"Reshape", FusionKind::View, ops::kAllTypes, nullptr, place_first},
    {"Squeeze", FusionKind::View, ops::kAllTypes, nullptr, place_first},
    {"Unsqueeze", FusionKind::View, ops::kAllTypes, nullptr, place_first},
};

// --- The table -----------------------------------------------------------------------------------

using RowsByOp = std::multimap<std::string, FusionRow, std::less<>>;

RowsByOp rows_by_op() {
  RowsByOp rows;
  for (const FusionRow& row : fusion_rows()) rows.emplace(row.op, row);
  return rows;
}

// nullptr if the table has no row for this version of the op.
const FusionRow* find_row(const Node& node) {
  static const RowsByOp kRows = rows_by_op();
  if (!node.domain.empty()) return nullptr;
  const auto [first, last] = kRows.equal_range(node.op);
  for (auto row = first; row != last; ++row) {
    if (node.version >= row->second.since && node.version <= row->second.until) {
      return &row->second;
    }
  }
  return nullptr;
}

FusionRole refused(std::string reason) { return {.refusal = std::move(reason)}; }

// Why the types of a node cannot be those of a group, or "".
std::string explain_types(const Graph& graph, const Node& node, const FusionRow& row) {
  if (node.inputs.empty() || node.inputs[0].is_none()) return "has no input";
  if (node.outputs.empty() || node.outputs[0].is_none()) return "has no output to compute";
  const auto explain_value = [&](ValueId id) -> std::string {
    if (id.is_none()) return "";
    const Type& type = graph[id].type;
    if (!type.is_known_tensor()) return "takes tensors of known shape only";
    if (is_small(type.element)) {
      return "no expression has elements of " + std::string(name(type.element));
    }
    if (type.shape->size() > kMaxRank) return "has more than 64 dimensions";
    const std::vector<int64_t> dims = dims_from(*type.shape);
    return std::find(dims.begin(), dims.end(), 0) != dims.end() ? "has no elements" : "";
  };
  std::string reason = explain_value(node.outputs[0]);
  for (size_t index = 1; row.kind == FusionKind::Slice && index < node.outputs.size(); ++index) {
    if (reason.empty()) reason = explain_value(node.outputs[index]);
  }
  for (const ValueId id : node.inputs) {
    if (reason.empty()) reason = explain_value(id);
  }
  if (!reason.empty()) return reason;
  const DataType type = graph[node.inputs[0]].type.element;
  if (!row.types.contains(type)) {
    return "no expression computes it for elements of " + std::string(name(type));
  }
  return "";
}

// Why another output than the first one is needed, or "".
std::string explain_outputs(const Graph& graph, const Node& node) {
  for (size_t index = 1; index < node.outputs.size(); ++index) {
    const ValueId output = node.outputs[index];
    if (!output.is_none() && is_read(graph, output)) return "more than its first output is read";
  }
  return "";
}

// Whether more than one element is reduced to one. Axes are those of input 0.
bool reduces(const FusionRole& role) {
  const std::vector<int64_t>& dims = role.input_dims[0];
  for (size_t axis = 0; axis < role.reduced_axes.size(); ++axis) {
    if (role.reduced_axes[axis] && dims[axis] != 1) return true;
  }
  return false;
}

template <class T>
std::optional<T> single_element(const Graph& graph, ValueId value, DataType type) {
  const std::optional<Tensor> constant = small_constant(graph, value);
  if (!constant || constant->elements() != 1) return std::nullopt;
  T element = 0;
  ops::convert_elements(constant->type(), constant->data(), type, &element, 1);
  return element;
}

}  // namespace

std::vector<FusionRow> fusion_rows() {
  std::vector<FusionRow> rows(std::begin(kViewRows), std::end(kViewRows));
  for (const std::span<const FusionRow> family :
       {activation_rows(), binary_rows(), cast_rows(), normalization_rows(), part_rows(),
        power_rows(), reduction_rows(), selection_rows(), unary_rows()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  return rows;
}

FusionRole fusion_role(const Graph& graph, const Node& node) {
  const FusionRow* row = find_row(node);
  if (row == nullptr) return refused("no expression computes this op");
  std::string reason = explain_types(graph, node, *row);
  if (reason.empty() && row->kind != FusionKind::Slice) reason = explain_outputs(graph, node);
  if (!reason.empty()) return refused(std::move(reason));
  FusionRole role;
  role.kind = row->kind;
  role.input_dims.resize(node.inputs.size());
  reason = row->place(graph, node, role);
  if (!reason.empty()) return refused(std::move(reason));
  if (!role.reduced_axes.empty() && !reduces(role)) {
    // It still computes a function of each element, such as |x| for ReduceL1. Output and input have
    // the same elements in the same order.
    role.kind = FusionKind::Elementwise;
    role.input_dims[0] = dims_of(graph, node.outputs[0]);
    role.reduced_axes.clear();
  }
  return role;
}

InstructionId lower_node(const Graph& graph, const Node& node, const NodeArguments& arguments,
                         ExpressionBuilder& builder) {
  const FusionRow* row = find_row(node);
  TESSERA_CHECK(row != nullptr && row->lower != nullptr, "only nodes with a role are lowered");
  FusionRole role;
  role.input_dims.resize(node.inputs.size());
  const std::string reason = row->place(graph, node, role);
  TESSERA_CHECK(reason.empty(), "only nodes with a role are lowered");
  const Lowering lowering = {graph, node, arguments, builder, reduces(role)};
  return converted(builder, row->lower(lowering), lowering.output_type());
}

// --- Lowering ------------------------------------------------------------------------------------

DataType Lowering::input_type(size_t index) const { return graph[node.inputs[index]].type.element; }

DataType Lowering::output_type() const { return graph[node.outputs[0]].type.element; }

bool Lowering::has_input(size_t index) const {
  return index < node.inputs.size() && !node.inputs[index].is_none();
}

InstructionId Lowering::input(size_t index) const {
  TESSERA_CHECK(index < arguments.inputs.size() && arguments.inputs[index] >= 0,
                "the role says which inputs are read");
  return arguments.inputs[index];
}

InstructionId Lowering::number(size_t index) const {
  return builder.convert(input(index), computed_type(input_type(index)));
}

int64_t Lowering::reduced_elements() const {
  return has_reduction ? arguments.reduced_elements : 1;
}

InstructionId Lowering::reduce(Operation reduction, InstructionId x) const {
  return has_reduction ? builder.reduce(reduction, x) : x;
}

// --- Dimensions ----------------------------------------------------------------------------------

std::vector<int64_t> dims_of(const Graph& graph, ValueId value) {
  return padded(dims_from(*graph[value].type.shape), 1);
}

std::vector<int64_t> padded(std::vector<int64_t> dims, size_t rank) {
  if (dims.size() < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  return dims;
}

std::string place_broadcast(const Graph& graph, const Node& node, FusionRole& role) {
  const size_t rank = dims_of(graph, node.outputs[0]).size();
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (node.inputs[index].is_none()) continue;
    role.input_dims[index] = padded(dims_of(graph, node.inputs[index]), rank);
  }
  return "";
}

std::string place_first(const Graph& graph, const Node& node, FusionRole& role) {
  role.input_dims[0] = dims_of(graph, node.inputs[0]);
  return "";
}

std::string place_aligned(const Graph& graph, const Node& node, FusionRole& role) {
  const std::vector<int64_t> left = dims_of(graph, node.inputs[0]);
  const std::vector<int64_t> right = dims_of(graph, node.inputs[1]);
  role.input_dims[0] = left;
  role.input_dims[1] = right;
  if (node.attributes.get_int("broadcast") == 0) return "";
  if (right.size() > left.size()) return "its right operand has more dimensions than the left one";
  const auto last = static_cast<int64_t>(left.size() - right.size());
  int64_t axis = last;
  const int64_t* given = node.attributes.find_int("axis");
  // A single element is broadcast whatever its axis.
  const bool is_single =
      std::all_of(right.begin(), right.end(), [](int64_t dim) { return dim == 1; });
  if (given != nullptr && !is_single) {
    axis = *given < 0 ? *given + static_cast<int64_t>(left.size()) : *given;
  }
  if (axis < 0 || axis > last) return "attribute 'axis' leaves no room for its right operand";
  std::vector<int64_t> dims(left.size(), 1);
  std::copy(right.begin(), right.end(), dims.begin() + axis);
  role.input_dims[1] = std::move(dims);
  return "";
}

// --- Constants -----------------------------------------------------------------------------------

std::optional<Tensor> small_constant(const Graph& graph, ValueId value) {
  const Value& found = graph[value];
  if (!found.is_constant() || found.constant.elements() > kMaxConstantElements) return std::nullopt;
  Tensor elements = elements_of(found);
  if (!elements.has_elements()) return std::nullopt;
  return elements;
}

std::optional<double> constant_number(const Graph& graph, ValueId value) {
  return single_element<double>(graph, value, DataType::Float64);
}

std::optional<int64_t> constant_integer(const Graph& graph, ValueId value) {
  if (!is_integer(graph[value].type.element)) return std::nullopt;
  return single_element<int64_t>(graph, value, DataType::Int64);
}

// --- Types ---------------------------------------------------------------------------------------

bool is_half(DataType type) { return type == DataType::Float16 || type == DataType::BFloat16; }

DataType computed_type(DataType type) { return is_half(type) ? DataType::Float32 : type; }

}  // namespace tessera::codegen
