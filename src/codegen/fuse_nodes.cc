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

// How values of some dimensions lie on the points of a group.
struct Place {
  PartedSpace parted;
  int64_t parts = 1;
  std::vector<AxisRun> runs;  // by dimension
};

std::optional<Place> place_of(const GroupSpace& group, std::span<const int64_t> dims, Level level) {
  std::optional<PartedSpace> parted = group.parted(dims, level);
  if (!parted) return std::nullopt;
  std::optional<std::vector<AxisRun>> runs = parted->space.runs(dims, level);
  if (!runs) return std::nullopt;
  return Place{*std::move(parted), group.parts(dims, level), *std::move(runs)};
}

// Where a tensor has the elements of a place: `strides` by dimension, 0 along those in which it is
// broadcast.
struct Elements {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

Elements row_major(std::span<const int64_t> dims) {
  Elements elements;
  elements.strides.resize(dims.size());
  int64_t stride = 1;
  for (size_t dim = dims.size(); dim-- > 0; stride *= dims[dim]) {
    elements.strides[dim] = dims[dim] == 1 ? 0 : stride;
  }
  return elements;
}

// The access of one part.
plugin::FusedAccess access_of(const Place& place, const Elements& elements, int64_t part,
                              DataType type) {
  plugin::FusedAccess access;
  access.data_type = static_cast<int32_t>(type);
  access.offset = elements.offset;
  const std::vector<int64_t>& axes = place.parted.space.axes();
  access.strides.assign(axes.size(), 0);
  for (size_t dim = 0; dim < place.runs.size(); ++dim) {
    int64_t stride = elements.strides[dim];
    for (size_t axis = place.runs[dim].last; axis-- > place.runs[dim].first;) {
      access.strides[axis] = stride;
      stride *= axes[axis];
    }
  }
  if (place.parts == 1) return access;
  const auto axis = static_cast<std::ptrdiff_t>(place.parted.axis);
  access.offset += part * access.strides[place.parted.axis];
  access.strides.erase(access.strides.begin() + axis);
  return access;
}

// Appends the instructions of the nodes of a group, whose space is known.
class GroupLowering {
 public:
  using Parts = std::vector<InstructionId>;

  GroupLowering(const FusionGraph& graph, const GroupSpace& space) : graph_(graph), space_(space) {}

  // False if an input cannot be read at the points.
  bool lower(NodeId id) {
    const Node& node = graph_.graph[id];
    switch (graph_.role(id).kind) {
      case FusionKind::View:
        instructions_of_[node.outputs[0]] = instructions_of_.at(node.inputs[0]);
        return true;
      case FusionKind::Slice:
        return lower_slice(id);
      case FusionKind::Concat:
        return lower_concat(id);
      default:
        return lower_computation(id);
    }
  }

  const Parts& instructions_of(ValueId value) const { return instructions_of_.at(value); }
  const ExpressionBuilder& builder() const { return builder_; }
  const std::vector<std::pair<ValueId, plugin::FusedAccess>>& operands() const { return operands_; }

 private:
  bool lower_computation(NodeId id) {
    const Node& node = graph_.graph[id];
    const bool is_elementwise = graph_.role(id).kind == FusionKind::Elementwise;
    const Level level = is_elementwise ? space_.levels.at(node.outputs[0]) : Level::Point;
    const std::vector<int64_t> dims = space_dims(graph_, id);
    const std::optional<Place> place = place_of(space_, dims, level);
    if (!place) return false;
    Parts& parts = instructions_of_[node.outputs[0]];
    for (int64_t part = 0; part < place->parts; ++part) {
      NodeArguments arguments = {.inputs = {}, .reduced_elements = space_.space.row_points()};
      for (size_t index = 0; index < node.inputs.size(); ++index) {
        const std::optional<InstructionId> argument = argument_of(id, index, dims, *place, part);
        if (!argument) return false;
        arguments.inputs.push_back(*argument);
      }
      parts.push_back(lower_node(graph_.graph, node, arguments, builder_));
    }
    return true;
  }

  // -1 for an input that is not read element by element.
  std::optional<InstructionId> argument_of(NodeId id, size_t index,
                                           const std::vector<int64_t>& dims, const Place& place,
                                           int64_t part) {
    const ValueId value = graph_.graph[id].inputs[index];
    const std::vector<int64_t>& input_dims = graph_.role(id).input_dims[index];
    if (input_dims.empty()) return -1;
    const auto inside = instructions_of_.find(value);
    if (inside != instructions_of_.end()) {
      const bool is_single = inside->second.size() == 1;
      return inside->second[is_single ? 0 : static_cast<size_t>(part)];
    }
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      if (input_dims[dim] == 1) continue;
      if (input_dims[dim] != dims[dim] || place.runs[dim].is_empty()) return std::nullopt;
    }
    const bool is_whole = place.parts == 1 && space_.space.has_one_shape() &&
                          input_dims == space_.space.axes() &&
                          known_dims(graph_.graph, value) == input_dims;
    return read(value, place, row_major(input_dims), part, is_whole);
  }

  bool lower_slice(NodeId id) {
    const Node& node = graph_.graph[id];
    const FusionRole& role = graph_.role(id);
    const auto inside = instructions_of_.find(node.inputs[0]);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      Parts parts;
      if (inside != instructions_of_.end()) {
        const std::optional<std::vector<int64_t>> taken = parts_taken(graph_, id, output, space_);
        if (!taken) return false;
        for (const int64_t part : *taken) parts.push_back(part_of(inside->second, part));
      } else {
        const std::vector<int64_t> dims = known_dims(graph_.graph, node.outputs[output]);
        Elements elements = row_major(role.input_dims[0]);
        for (size_t dim = 0; dim < dims.size(); ++dim) {
          const SliceRange& range = role.slices[output][dim];
          elements.offset += range.start * elements.strides[dim];
          elements.strides[dim] *= range.step;
        }
        if (!read_parts(node.inputs[0], dims, elements, parts)) return false;
      }
      instructions_of_[node.outputs[output]] = std::move(parts);
    }
    return true;
  }

  bool lower_concat(NodeId id) {
    const Node& node = graph_.graph[id];
    Parts parts;
    for (const ValueId input : node.inputs) {
      const auto inside = instructions_of_.find(input);
      if (inside != instructions_of_.end()) {
        parts.insert(parts.end(), inside->second.begin(), inside->second.end());
      } else {
        const std::vector<int64_t> dims = known_dims(graph_.graph, input);
        if (!read_parts(input, dims, row_major(dims), parts)) return false;
      }
    }
    instructions_of_[node.outputs[0]] = std::move(parts);
    return true;
  }

  static InstructionId part_of(const Parts& parts, int64_t part) {
    return parts[static_cast<size_t>(part)];
  }

  // Appends an operand for each part of a value that lies on the points as one of `dims` does.
  bool read_parts(ValueId value, const std::vector<int64_t>& dims, const Elements& elements,
                  Parts& parts) {
    const std::optional<Place> place = place_of(space_, dims, Level::Point);
    if (!place) return false;
    const bool is_whole = place->parts == 1 && space_.space.has_one_shape() &&
                          dims == space_.space.axes() && known_dims(graph_.graph, value) == dims;
    for (int64_t part = 0; part < place->parts; ++part) {
      parts.push_back(read(value, *place, elements, part, is_whole));
    }
    return true;
  }

  InstructionId read(ValueId value, const Place& place, const Elements& elements, int64_t part,
                     bool is_whole) {
    const std::optional<InstructionId> constant = read_constant(value);
    if (constant) return *constant;
    plugin::FusedAccess access = access_of(place, elements, part, graph_.graph[value].type.element);
    access.is_whole = is_whole;
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
      const auto& [other, earlier] = operands_[index];
      if (other == value && earlier.offset == access.offset && earlier.strides == access.strides) {
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
  std::map<ValueId, Parts> instructions_of_;
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
    for (const ValueId value : graph.graph[node].outputs) {
      if (value.is_none()) continue;
      const auto found = reads.find(value);
      const int inside = found == reads.end() ? 0 : found->second;
      if (graph.use_counts[static_cast<size_t>(value.index)] > inside) results.push_back(value);
    }
  }
  return results;
}

// What is written: a part of a value.
struct Result {
  ValueId value;
  plugin::FusedAccess access;
  InstructionId instruction = -1;
};

std::vector<Result> accesses_of(const FusionGraph& graph, const GroupLowering& lowering,
                                const GroupSpace& group, ValueId value) {
  const std::vector<int64_t> dims = known_dims(graph.graph, value);
  const Level level = group.levels.at(value);
  const std::optional<Place> place = place_of(group, dims, level);
  TESSERA_CHECK(place.has_value(), "the space was refined for the dimensions of each result");
  const GroupLowering::Parts& parts = lowering.instructions_of(value);
  std::vector<Result> results;
  for (int64_t part = 0; part < place->parts; ++part) {
    plugin::FusedAccess access =
        access_of(*place, row_major(dims), part, graph.graph[value].type.element);
    access.is_whole = level == Level::Point && place->parts == 1 && group.space.has_one_shape() &&
                      dims == group.space.axes();
    results.push_back({value, std::move(access), parts[static_cast<size_t>(part)]});
  }
  return results;
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

// What a group moves at least. Of a tensor that is cut, only some elements may be read.
int64_t bytes_of(const FusionGraph& graph, const plugin::FusedGroup& group) {
  std::vector<int64_t> read(group.inputs.size(), 0);
  for (const plugin::FusedAccess& access : group.operands) {
    int64_t bytes = element_bytes(static_cast<DataType>(access.data_type));
    for (size_t axis = 0; axis < group.dims.size(); ++axis) {
      if (access.strides[axis] != 0) bytes *= group.dims[axis];
    }
    read[static_cast<size_t>(access.port)] += bytes;
  }
  const auto all = [&](int32_t value) {
    return type_bytes(graph.graph[ValueId{value}].type).value_or(0);
  };
  int64_t bytes = 0;
  for (size_t port = 0; port < group.inputs.size(); ++port) {
    bytes += std::min(read[port], all(group.inputs[port]));
  }
  for (const int32_t value : group.outputs) bytes += all(value);
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
  std::vector<Result> accesses;
  for (const ValueId value : results) {
    for (Result& result : accesses_of(graph, lowering, space, value)) {
      accesses.push_back(std::move(result));
    }
  }
  std::vector<std::string> result_traits;
  std::vector<InstructionId> numbers;
  for (const Result& result : accesses) {
    result_traits.push_back(trait_of(result.access));
    numbers.push_back(result.instruction);
  }
  const CanonicalExpression expression =
      canonical(lowering.builder().instructions(), numbers, operand_traits, result_traits);
  for (const int32_t old : expression.operand_order) {
    const auto& [value, access] = lowering.operands()[static_cast<size_t>(old)];
    group.operands.push_back(access);
    group.operands.back().port = port_of(group.inputs, value);
  }
  for (size_t index = 0; index < accesses.size(); ++index) {
    const Result& old = accesses[static_cast<size_t>(expression.result_order[index])];
    group.results.push_back(old.access);
    group.results.back().port = port_of(group.outputs, old.value);
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
  for (const NodeId node : nodes) {
    made.insert(graph.graph[node].outputs.begin(), graph.graph[node].outputs.end());
  }
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

// How the nodes of a group together cut their tensors; nullopt if they contradict each other.
std::optional<Partition> partition_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::set<ValueId> made;
  std::optional<Partition> partition = Partition{element_count(space_dims(graph, nodes[0])), 0};
  for (const NodeId node : nodes) {
    const Node& found = graph.graph[node];
    const bool is_input_inside = made.contains(found.inputs[0]);
    made.insert(found.outputs.begin(), found.outputs.end());
    const std::optional<Partition> demanded = demanded_partition(graph, node, is_input_inside);
    if (demanded) partition = common_partition(*partition, *demanded);
    if (!partition) return std::nullopt;
  }
  return partition;
}

std::optional<GroupSpace> space_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  const std::optional<Partition> partition = partition_of(graph, nodes);
  if (!partition) return std::nullopt;
  std::optional<GroupSpace> space = first_space(graph, nodes[0], *partition);
  for (size_t index = 0; space && index < nodes.size(); ++index) {
    if (!add_node(graph, nodes[index], *space)) return std::nullopt;
  }
  return space;
}

}  // namespace

FusedNodes fuse_nodes(const FusionGraph& graph, std::span<const NodeId> nodes) {
  if (nodes.empty()) return {{}, "has no nodes"};
  for (const NodeId node : nodes) {
    const FusionRole& role = graph.role(node);
    if (role.kind == FusionKind::None) return {{}, role.refusal};
  }
  const std::optional<GroupSpace> space = space_of(graph, nodes);
  if (!space) return {{}, "does not fit into one pass with the others"};
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
  group.bytes = bytes_of(graph, group);
  std::string refusal = explain_size(group);
  if (!refusal.empty()) return {{}, std::move(refusal)};
  return {std::move(group), ""};
}

}  // namespace tessera::codegen
