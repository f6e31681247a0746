#include "codegen/fuse_nodes.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"

namespace tessera::codegen {
namespace {

// What a kernel should have at most. A chain of 1,100 operations fits.
constexpr size_t kMaxInstructions = 6'000;
constexpr size_t kMaxAccesses = 48;
constexpr int kMaxReductionDepth = 3;

bool is_inside(const GroupSpace& group, ValueId value) { return group.levels.contains(value); }

// The rank of the space of a node, and its dimensions.
std::vector<int64_t> space_dims(const FusionGraph& graph, NodeId node) {
  const FusionKind kind = graph.roles[static_cast<size_t>(node.index)].kind;
  const bool is_of_input = kind == FusionKind::Reduction || kind == FusionKind::View;
  const Node& found = graph.graph[node];
  return known_dims(graph.graph, is_of_input ? found.inputs[0] : found.outputs[0]);
}

// The level of an elementwise node: that of the inputs that have its dimensions. nullopt if the
// inputs do not fit.
std::optional<Level> elementwise_level(const FusionGraph& graph, NodeId node,
                                       const std::vector<int64_t>& dims, const GroupSpace& group) {
  const FusionRole& role = graph.roles[static_cast<size_t>(node.index)];
  const Node& found = graph.graph[node];
  bool is_row = false;
  bool is_point = false;
  for (size_t index = 0; index < found.inputs.size(); ++index) {
    if (role.input_dims[index].empty() || !is_inside(group, found.inputs[index])) continue;
    const bool is_row_input = group.levels.at(found.inputs[index]) == Level::Row;
    (role.input_dims[index] == dims && is_row_input ? is_row : is_point) = true;
  }
  if (is_row && !is_point) return Level::Row;
  // If one point is reduced to one, both levels have the same dimensions.
  for (size_t index = 0; index < found.inputs.size(); ++index) {
    const std::vector<int64_t>& input_dims = role.input_dims[index];
    if (input_dims.empty() || !is_inside(group, found.inputs[index])) continue;
    const Level level = group.levels.at(found.inputs[index]);
    if (!group.space.broadcasts(input_dims, level, dims)) return std::nullopt;
  }
  return Level::Point;
}

bool add_view(const FusionGraph& graph, const Node& node, GroupSpace& group) {
  const Level level = group.levels.at(node.inputs[0]);
  const std::vector<int64_t> dims = known_dims(graph.graph, node.outputs[0]);
  const bool fits = level == Level::Point ? group.space.add_shape(dims)
                                          : group.space.runs(dims, Level::Row).has_value();
  group.levels[node.outputs[0]] = level;
  return fits;
}

bool add_reduction(const FusionGraph& graph, NodeId id, GroupSpace& group) {
  const FusionRole& role = graph.roles[static_cast<size_t>(id.index)];
  const Node& node = graph.graph[id];
  // What a reduction reads besides its first input comes from outside.
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (!is_inside(group, node.inputs[index])) continue;
    if (index > 0 || group.levels.at(node.inputs[index]) != Level::Point) return false;
  }
  const std::vector<int64_t> dims = space_dims(graph, id);
  if (!group.space.add_shape(dims) || !group.space.reduce(dims, role.reduced_axes)) return false;
  const bool is_reduction = role.kind == FusionKind::Reduction;
  group.levels[node.outputs[0]] = is_reduction ? Level::Row : Level::Point;
  if (!is_reduction) return true;
  return group.space.runs(known_dims(graph.graph, node.outputs[0]), Level::Row).has_value();
}

bool has_reduction(FusionKind kind) {
  return kind == FusionKind::Reduction || kind == FusionKind::Normalization;
}

}  // namespace

FusionGraph::FusionGraph(const Graph& given)
    : graph(given), producers(tessera::producers(given)), use_counts(tessera::use_counts(given)) {
  roles.reserve(given.nodes.size());
  for (const Node& node : given.nodes) roles.push_back(fusion_role(given, node));
}

std::vector<int64_t> known_dims(const Graph& graph, ValueId value) {
  std::vector<int64_t> dims;
  for (const Dim& dim : *graph[value].type.shape) dims.push_back(dim.value());
  if (dims.empty()) dims.push_back(1);
  return dims;
}

bool add_node(const FusionGraph& graph, NodeId id, std::optional<GroupSpace>& group) {
  const FusionRole& role = graph.roles[static_cast<size_t>(id.index)];
  const Node& node = graph.graph[id];
  if (role.kind == FusionKind::None) return false;
  if (!group) {
    // A view is free outside of a group.
    if (role.kind == FusionKind::View) return false;
    group = GroupSpace{IterationSpace(space_dims(graph, id)), {}};
  }
  if (role.kind == FusionKind::View) {
    return is_inside(*group, node.inputs[0]) && add_view(graph, node, *group);
  }
  if (has_reduction(role.kind)) return add_reduction(graph, id, *group);
  const std::vector<int64_t> dims = known_dims(graph.graph, node.outputs[0]);
  const std::optional<Level> level = elementwise_level(graph, id, dims, *group);
  if (!level) return false;
  group->levels[node.outputs[0]] = *level;
  return *level == Level::Row ? group->space.runs(dims, Level::Row).has_value()
                              : group->space.add_shape(dims);
}

// --- Instructions --------------------------------------------------------------------------------

namespace {

// Appends the instructions of the nodes of a group, whose space is known.
class GroupLowering {
 public:
  GroupLowering(const FusionGraph& graph, const GroupSpace& space) : graph_(graph), space_(space) {}

  // False if an input cannot be read at the points.
  bool lower(NodeId id) {
    const Node& node = graph_.graph[id];
    const FusionRole& role = graph_.roles[static_cast<size_t>(id.index)];
    if (role.kind == FusionKind::View) {
      instructions_of_[node.outputs[0]] = instructions_of_.at(node.inputs[0]);
      return true;
    }
    NodeArguments arguments = {.inputs = {}, .reduced_elements = space_.space.row_points()};
    const std::vector<int64_t> dims = space_dims(graph_, id);
    const Level level =
        role.kind == FusionKind::Elementwise ? space_.levels.at(node.outputs[0]) : Level::Point;
    for (size_t index = 0; index < node.inputs.size(); ++index) {
      const std::vector<int64_t>& input_dims = role.input_dims[index];
      InstructionId argument = -1;
      if (!input_dims.empty()) {
        const std::optional<InstructionId> found =
            read(node.inputs[index], input_dims, dims, level);
        if (!found) return false;
        argument = *found;
      }
      arguments.inputs.push_back(argument);
    }
    instructions_of_[node.outputs[0]] = lower_node(graph_.graph, node, arguments, builder_);
    return true;
  }

  InstructionId instruction_of(ValueId value) const { return instructions_of_.at(value); }
  const ExpressionBuilder& builder() const { return builder_; }
  const std::vector<std::pair<ValueId, plugin::FusedAccess>>& operands() const { return operands_; }

 private:
  std::optional<InstructionId> read(ValueId value, const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& node_dims, Level level) {
    const auto inside = instructions_of_.find(value);
    if (inside != instructions_of_.end()) return inside->second;
    const std::optional<InstructionId> constant = read_constant(value);
    if (constant) return constant;
    const std::optional<std::vector<AxisRun>> runs = space_.space.runs(node_dims, level);
    if (!runs) return std::nullopt;
    plugin::FusedAccess access;
    access.data_type = static_cast<int32_t>(graph_.graph[value].type.element);
    access.strides.assign(space_.space.axes().size(), 0);
    // A Row has one element for all points of the reduced axes, so only its own axes count.
    const std::vector<int64_t>& axes = space_.space.axes();
    int64_t stride = 1;
    for (size_t dim = dims.size(); dim-- > 0;) {
      if (dims[dim] == 1) continue;
      const AxisRun run = (*runs)[dim];
      if (dims[dim] != node_dims[dim] || run.is_empty()) return std::nullopt;
      for (size_t axis = run.last; axis-- > run.first;) {
        access.strides[axis] = stride;
        stride *= axes[axis];
      }
    }
    access.is_whole = level == Level::Point && space_.space.has_one_shape() && dims == axes &&
                      known_dims(graph_.graph, value) == axes;
    return add_operand(value, std::move(access));
  }

  // A constant of one element is part of the expression.
  std::optional<InstructionId> read_constant(ValueId value) {
    const Value& found = graph_.graph[value];
    if (!found.is_constant() || found.constant.elements() != 1) return std::nullopt;
    const Tensor tensor = elements_of(found);
    if (!tensor.has_elements()) return std::nullopt;
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.data(), static_cast<size_t>(element_bytes(tensor.type())));
    if (tensor.type() == DataType::Bool) bits = bits != 0 ? 1 : 0;
    return builder_.constant_bits(tensor.type(), bits);
  }

  InstructionId add_operand(ValueId value, plugin::FusedAccess access) {
    for (size_t index = 0; index < operands_.size(); ++index) {
      if (operands_[index].first == value && operands_[index].second.strides == access.strides) {
        return builder_.operand(static_cast<int32_t>(index), graph_.graph[value].type.element);
      }
    }
    operands_.emplace_back(value, std::move(access));
    return builder_.operand(static_cast<int32_t>(operands_.size() - 1),
                            graph_.graph[value].type.element);
  }

  const FusionGraph& graph_;
  const GroupSpace& space_;
  ExpressionBuilder builder_;
  std::map<ValueId, InstructionId> instructions_of_;
  std::vector<std::pair<ValueId, plugin::FusedAccess>> operands_;
};

// The values that somebody outside of the group reads, in the order of their nodes.
std::vector<ValueId> results_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::map<ValueId, int> reads;
  for (const NodeId node : nodes) {
    for (const ValueId input : graph.graph[node].inputs) {
      if (!input.is_none()) ++reads[input];
    }
  }
  std::vector<ValueId> results;
  for (const NodeId node : nodes) {
    const ValueId value = graph.graph[node].outputs[0];
    const auto found = reads.find(value);
    const int inside = found == reads.end() ? 0 : found->second;
    if (graph.use_counts[static_cast<size_t>(value.index)] > inside) results.push_back(value);
  }
  return results;
}

plugin::FusedAccess result_access(const FusionGraph& graph, const GroupSpace& group,
                                  ValueId value) {
  const std::vector<int64_t> dims = known_dims(graph.graph, value);
  const Level level = group.levels.at(value);
  const std::optional<std::vector<AxisRun>> runs = group.space.runs(dims, level);
  TESSERA_CHECK(runs.has_value(), "the space was refined for the dimensions of each result");
  const std::vector<int64_t>& axes = group.space.axes();
  plugin::FusedAccess access;
  access.data_type = static_cast<int32_t>(graph.graph[value].type.element);
  access.strides.assign(axes.size(), 0);
  int64_t stride = 1;
  for (size_t dim = dims.size(); dim-- > 0;) {
    for (size_t axis = (*runs)[dim].last; axis-- > (*runs)[dim].first;) {
      access.strides[axis] = stride;
      stride *= axes[axis];
    }
  }
  access.is_whole = level == Level::Point && group.space.has_one_shape() && dims == axes;
  return access;
}

// What tells apart two accesses besides the value: their type and the axes that they pass through.
// Those of whole tensors are all; their number must not count, because axes are merged later.
std::string trait_of(const plugin::FusedAccess& access) {
  std::string trait = std::to_string(access.data_type);
  if (access.is_whole) return trait + "w";
  for (const int64_t stride : access.strides) trait += stride == 0 ? '0' : '1';
  return trait;
}

int32_t port_of(std::vector<int32_t>& ports, ValueId value) {
  const auto found = std::find(ports.begin(), ports.end(), value.index);
  if (found != ports.end()) return static_cast<int32_t>(found - ports.begin());
  ports.push_back(value.index);
  return static_cast<int32_t>(ports.size() - 1);
}

int64_t bytes_of(const Graph& graph, const std::vector<int32_t>& values) {
  int64_t bytes = 0;
  for (const int32_t value : values) bytes += type_bytes(graph[ValueId{value}].type).value_or(0);
  return bytes;
}

// Fills in operands, results and instructions in their canonical order.
void set_expression(const FusionGraph& graph, const GroupLowering& lowering,
                    const GroupSpace& space, const std::vector<ValueId>& results,
                    plugin::FusedGroup& group) {
  std::vector<std::string> operand_traits;
  for (const auto& [value, access] : lowering.operands()) {
    operand_traits.push_back(trait_of(access));
  }
  std::vector<plugin::FusedAccess> accesses;
  std::vector<std::string> result_traits;
  std::vector<InstructionId> numbers;
  for (const ValueId value : results) {
    accesses.push_back(result_access(graph, space, value));
    result_traits.push_back(trait_of(accesses.back()));
    numbers.push_back(lowering.instruction_of(value));
  }
  const CanonicalExpression expression =
      canonical(lowering.builder().instructions(), numbers, operand_traits, result_traits);
  for (const int32_t old : expression.operand_order) {
    const auto& [value, access] = lowering.operands()[static_cast<size_t>(old)];
    group.operands.push_back(access);
    group.operands.back().port = port_of(group.inputs, value);
  }
  for (size_t index = 0; index < results.size(); ++index) {
    const auto old = static_cast<size_t>(expression.result_order[index]);
    group.results.push_back(accesses[old]);
    group.results.back().port = port_of(group.outputs, results[old]);
    group.results.back().instruction = expression.results[index];
  }
  for (const Instruction& instruction : expression.instructions) {
    group.instructions.push_back(
        {static_cast<int32_t>(instruction.operation),
         static_cast<int32_t>(instruction.type),
         {instruction.arguments[0], instruction.arguments[1], instruction.arguments[2]},
         instruction.index,
         instruction.bits});
  }
  group.text = text(expression.instructions, expression.results);
}

// Inputs that no instruction reads: the second input of CastLike, and those that decide what is
// computed. A candidate has each input of its nodes, unless it is a constant.
void add_unread_inputs(const FusionGraph& graph, std::span<const NodeId> nodes,
                       plugin::FusedGroup& group) {
  std::set<ValueId> made;
  for (const NodeId node : nodes) made.insert(graph.graph[node].outputs[0]);
  for (const NodeId node : nodes) {
    for (const ValueId input : graph.graph[node].inputs) {
      if (input.is_none() || made.contains(input) || graph.graph[input].is_constant()) continue;
      port_of(group.inputs, input);
    }
  }
}

std::string explain_size(const plugin::FusedGroup& group) {
  if (group.instructions.size() > kMaxInstructions) return "needs too many instructions";
  if (group.operands.size() + group.results.size() > kMaxAccesses) {
    return "reads and writes too many tensors";
  }
  const std::vector<int> depths = plugin::reduction_depths(group);
  const auto deepest = std::max_element(depths.begin(), depths.end());
  if (deepest != depths.end() && *deepest > kMaxReductionDepth) {
    return "reduces too many times, one after another";
  }
  return "";
}

}  // namespace

FusedNodes fuse_nodes(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::optional<GroupSpace> space;
  for (const NodeId node : nodes) {
    const FusionRole& role = graph.roles[static_cast<size_t>(node.index)];
    if (role.kind == FusionKind::None) return {{}, role.refusal};
    if (!add_node(graph, node, space)) return {{}, "does not fit into one pass with the others"};
  }
  if (!space) return {{}, "has no nodes"};
  GroupLowering lowering(graph, *space);
  for (const NodeId node : nodes) {
    if (!lowering.lower(node)) return {{}, "reads a tensor in a way that one pass cannot"};
  }
  plugin::FusedGroup group;
  for (const NodeId node : nodes) group.nodes.push_back(node.index);
  group.dims = space->space.axes();
  for (size_t axis = 0; axis < group.dims.size(); ++axis) {
    if (space->space.reduced()[axis]) group.reduced_axes |= uint64_t{1} << axis;
  }
  set_expression(graph, lowering, *space, results_of(graph, nodes), group);
  add_unread_inputs(graph, nodes, group);
  group.flops = group.points() * static_cast<int64_t>(group.instructions.size());
  group.bytes = bytes_of(graph.graph, group.inputs) + bytes_of(graph.graph, group.outputs);
  std::string refusal = explain_size(group);
  if (!refusal.empty()) return {{}, std::move(refusal)};
  return {std::move(group), ""};
}

}  // namespace tessera::codegen
