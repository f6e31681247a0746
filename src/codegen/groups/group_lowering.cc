#include "codegen/groups/group_lowering.h"

#include <cstring>

#include "base/errors/check.h"

namespace tessera::codegen {
namespace {

std::optional<Place> place_of(const GroupSpace& group, std::span<const int64_t> dims, Level level) {
  std::optional<PartedSpace> parted = group.parted(dims, level);
  if (!parted) return std::nullopt;
  std::optional<std::vector<AxisRun>> runs = parted->space.runs(dims, level);
  if (!runs) return std::nullopt;
  return Place{*std::move(parted), group.parts(dims, level), *std::move(runs)};
}

TensorElements row_major(std::span<const int64_t> dims) {
  TensorElements elements;
  elements.strides.resize(dims.size());
  int64_t stride = 1;
  for (size_t dim = dims.size(); dim-- > 0; stride *= dims[dim]) {
    elements.strides[dim] = dims[dim] == 1 ? 0 : stride;
  }
  return elements;
}

// The access of one part.
plugin::FusedAccess access_of(const Place& place, const TensorElements& elements, int64_t part,
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

}  // namespace

bool GroupLowering::lower(NodeId id) {
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

bool GroupLowering::lower_computation(NodeId id) {
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

std::optional<InstructionId> GroupLowering::argument_of(NodeId id, size_t index,
                                                        const std::vector<int64_t>& dims,
                                                        const Place& place, int64_t part) {
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

bool GroupLowering::lower_slice(NodeId id) {
  const Node& node = graph_.graph[id];
  const FusionRole& role = graph_.role(id);
  const auto inside = instructions_of_.find(node.inputs[0]);
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    Parts parts;
    if (inside != instructions_of_.end()) {
      const std::optional<std::vector<int64_t>> taken = parts_taken(graph_, id, output, space_);
      if (!taken) return false;
      for (const int64_t part : *taken) parts.push_back(inside->second[static_cast<size_t>(part)]);
    } else {
      const std::vector<int64_t> dims = known_dims(graph_.graph, node.outputs[output]);
      TensorElements elements = row_major(role.input_dims[0]);
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

bool GroupLowering::lower_concat(NodeId id) {
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

bool GroupLowering::read_parts(ValueId value, const std::vector<int64_t>& dims,
                               const TensorElements& elements, Parts& parts) {
  const std::optional<Place> place = place_of(space_, dims, Level::Point);
  if (!place) return false;
  const bool is_whole = place->parts == 1 && space_.space.has_one_shape() &&
                        dims == space_.space.axes() && known_dims(graph_.graph, value) == dims;
  for (int64_t part = 0; part < place->parts; ++part) {
    parts.push_back(read(value, *place, elements, part, is_whole));
  }
  return true;
}

InstructionId GroupLowering::read(ValueId value, const Place& place, const TensorElements& elements,
                                  int64_t part, bool is_whole) {
  const std::optional<InstructionId> constant = read_constant(value);
  if (constant) return *constant;
  plugin::FusedAccess access = access_of(place, elements, part, graph_.graph[value].type.element);
  access.is_whole = is_whole;
  return add_operand(value, std::move(access));
}

std::optional<InstructionId> GroupLowering::read_constant(ValueId value) {
  const Value& found = graph_.graph[value];
  if (!found.is_constant() || found.constant.elements() != 1) return std::nullopt;
  const Tensor tensor = elements_of(found);
  if (!tensor.has_elements()) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.data(), static_cast<size_t>(element_bytes(tensor.type())));
  if (tensor.type() == DataType::Bool) bits = bits != 0 ? 1 : 0;
  return builder_.constant_bits(tensor.type(), bits);
}

InstructionId GroupLowering::add_operand(ValueId value, plugin::FusedAccess access) {
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

std::vector<PartResult> GroupLowering::results(ValueId value) const {
  const std::vector<int64_t> dims = known_dims(graph_.graph, value);
  const Level level = space_.levels.at(value);
  const std::optional<Place> place = place_of(space_, dims, level);
  TESSERA_CHECK(place.has_value(), "the space was refined for the dimensions of each result");
  const Parts& parts = instructions_of_.at(value);
  std::vector<PartResult> results;
  for (int64_t part = 0; part < place->parts; ++part) {
    plugin::FusedAccess access =
        access_of(*place, row_major(dims), part, graph_.graph[value].type.element);
    access.is_whole = level == Level::Point && place->parts == 1 && space_.space.has_one_shape() &&
                      dims == space_.space.axes();
    results.push_back({value, std::move(access), parts[static_cast<size_t>(part)]});
  }
  return results;
}

}  // namespace tessera::codegen
