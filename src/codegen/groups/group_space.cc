#include "codegen/groups/group_space.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tessera::codegen {
namespace {

// A kernel computes all parts at each point.

bool is_inside(const GroupSpace& group, ValueId value) { return group.levels.contains(value); }

// The level of an elementwise node: the level of the inputs that have its dimensions. nullopt if
// the inputs do not fit.
std::optional<Level> elementwise_level(const FusionGraph& graph, NodeId node,
                                       const std::vector<int64_t>& dims, const GroupSpace& group) {
  const FusionRole& role = graph.role(node);
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

// Whether a node that reads nothing from the group computes rows.
bool computes_rows(const FusionGraph& graph, NodeId id, const std::vector<int64_t>& dims,
                   const GroupSpace& group) {
  const auto is_read_inside = [&](ValueId input) { return is_inside(group, input); };
  return group.space.has_reduction() && product(dims) != group.space.points() &&
         std::ranges::none_of(graph.graph[id].inputs, is_read_inside);
}

bool add_elementwise(const FusionGraph& graph, NodeId id, GroupSpace& group) {
  const ValueId output = graph.graph[id].outputs[0];
  const std::vector<int64_t> dims = known_dims(graph.graph, output);
  std::optional<Level> level = elementwise_level(graph, id, dims, group);
  if (!level) return false;
  if (computes_rows(graph, id, dims, group)) level = Level::Row;
  group.levels[output] = *level;
  return *level == Level::Row ? group.space.runs(dims, Level::Row).has_value()
                              : group.add_shape(dims);
}

bool add_view(const FusionGraph& graph, const Node& node, GroupSpace& group) {
  const Level level = group.levels.at(node.inputs[0]);
  const std::vector<int64_t> dims = known_dims(graph.graph, node.outputs[0]);
  const bool fits = level == Level::Point ? group.add_shape(dims)
                                          : group.space.runs(dims, Level::Row).has_value();
  group.levels[node.outputs[0]] = level;
  return fits;
}

bool add_reduction(const FusionGraph& graph, NodeId id, GroupSpace& group) {
  const FusionRole& role = graph.role(id);
  const Node& node = graph.graph[id];
  if (group.part_elements != 0) return false;
  // All inputs of a reduction except the first come from outside.
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (!is_inside(group, node.inputs[index])) continue;
    if (index > 0 || group.levels.at(node.inputs[index]) != Level::Point) return false;
  }
  const std::vector<int64_t> dims = space_dims(graph, id);
  if (!group.space.add_shape(dims) || !group.space.reduce(dims, role.reduced_axes)) return false;
  if (!role.space_dims.empty() &&
      !group.space.add_shape(known_dims(graph.graph, node.outputs[0]))) {
    return false;
  }
  const bool is_reduction = role.kind == FusionKind::Reduction;
  group.levels[node.outputs[0]] = is_reduction ? Level::Row : Level::Point;
  if (!is_reduction) return true;
  return group.space.runs(known_dims(graph.graph, node.outputs[0]), Level::Row).has_value();
}

// Whether the values that a node cuts or joins have an element for each point of some parts.
bool add_parts(const FusionGraph& graph, const Node& node, std::span<const ValueId> values,
               GroupSpace& group) {
  for (const ValueId value : values) {
    if (!group.add_shape(known_dims(graph.graph, value))) return false;
    if (is_inside(group, value) && group.levels.at(value) != Level::Point) return false;
  }
  for (const ValueId output : node.outputs) {
    if (!group.add_shape(known_dims(graph.graph, output))) return false;
    group.levels[output] = Level::Point;
  }
  return true;
}

bool add_slice(const FusionGraph& graph, NodeId id, GroupSpace& group) {
  const Node& node = graph.graph[id];
  const bool is_cut = is_inside(group, node.inputs[0]);
  if (!add_parts(graph, node, std::span(node.inputs).first(is_cut ? 1 : 0), group)) return false;
  for (size_t output = 0; is_cut && output < node.outputs.size(); ++output) {
    if (!parts_taken(graph, id, output, group)) return false;
  }
  return true;
}

// --- Partitions ----------------------------------------------------------------------------------

// A dimension of a tensor among the others.
struct Dimension {
  int64_t outer = 1;  // the product of those before it
  int64_t size = 1;
  int64_t inner = 1;  // the product of those after it
};

Dimension dimension_at(std::span<const int64_t> dims, size_t axis) {
  return {product(dims.first(axis)), dims[axis], product(dims.subspan(axis + 1))};
}

bool takes_all(const SliceRange& range, int64_t size) {
  return range.start == 0 && range.step == 1 && range.count == size;
}

// The dimension of which a Slice does not take all; the first one if it takes all of each, nullopt
// if there are several.
std::optional<size_t> sliced_axis(std::span<const int64_t> dims,
                                  const std::vector<std::vector<SliceRange>>& outputs) {
  std::optional<size_t> found;
  for (const std::vector<SliceRange>& ranges : outputs) {
    for (size_t axis = 0; axis < ranges.size(); ++axis) {
      if (takes_all(ranges[axis], dims[axis])) continue;
      if (found && *found != axis) return std::nullopt;
      found = axis;
    }
  }
  return found.value_or(0);
}

std::optional<Partition> demanded_by_slice(const FusionGraph& graph, NodeId id) {
  const FusionRole& role = graph.role(id);
  const std::vector<int64_t>& dims = role.input_dims[0];
  const std::optional<size_t> axis = sliced_axis(dims, role.slices);
  if (!axis) return std::nullopt;
  const Dimension sliced = dimension_at(dims, *axis);
  int64_t unit = sliced.size;
  int64_t step = 1;
  for (const std::vector<SliceRange>& ranges : role.slices) {
    const SliceRange& range = ranges[*axis];
    unit = std::gcd(unit, std::gcd(range.start, range.count));
    step = std::max(step, range.step);
  }
  if (step == 1) return Partition{sliced.outer * unit * sliced.inner, unit * sliced.inner};
  if (sliced.size % step != 0) return std::nullopt;
  return Partition{sliced.outer * (sliced.size / step) * sliced.inner, sliced.inner};
}

Partition demanded_by_concat(const FusionGraph& graph, NodeId id) {
  const FusionRole& role = graph.role(id);
  const Dimension joint = dimension_at(space_dims(graph, id), role.concat_axis);
  int64_t unit = joint.size;
  for (const std::vector<int64_t>& dims : role.input_dims) {
    unit = std::gcd(unit, dims[role.concat_axis]);
  }
  return {joint.outer * unit * joint.inner, unit * joint.inner};
}

}  // namespace

std::optional<Partition> demanded_partition(const FusionGraph& graph, NodeId id,
                                            bool is_input_inside) {
  const FusionKind kind = graph.role(id).kind;
  if (kind == FusionKind::Concat) return demanded_by_concat(graph, id);
  if (kind != FusionKind::Slice) return std::nullopt;
  const Node& node = graph.graph[id];
  const bool is_equal = std::ranges::all_of(node.outputs, [&](ValueId output) {
    return known_dims(graph.graph, output) == space_dims(graph, id);
  });
  return is_input_inside || !is_equal ? demanded_by_slice(graph, id) : std::nullopt;
}

std::optional<Partition> common_partition(const Partition& left, const Partition& right) {
  if (left.part_elements == right.part_elements) {
    return left.points == right.points ? std::optional(left) : std::nullopt;
  }
  if (left.part_elements == 0) {
    return left.points % right.points == 0 ? std::optional(right) : std::nullopt;
  }
  if (right.part_elements == 0) return common_partition(right, left);
  const int64_t elements = std::gcd(left.part_elements, right.part_elements);
  const int64_t points = left.points / (left.part_elements / elements);
  if (right.points / (right.part_elements / elements) != points) return std::nullopt;
  return Partition{points, elements};
}

std::optional<RepeatedRows> demanded_rows(const FusionGraph& graph, NodeId id, size_t index) {
  if (graph.role(id).kind != FusionKind::Elementwise) return std::nullopt;
  const std::vector<int64_t>& dims = graph.role(id).input_dims[index];
  RepeatedRows rows = {space_dims(graph, id), 0};
  if (dims.empty() || dims == rows.dims) return std::nullopt;
  while (rows.first < dims.size() && dims[rows.first] == rows.dims[rows.first]) ++rows.first;
  // A single element would forbid reductions over some of the dimensions only.
  if (product(std::span(dims).first(rows.first)) == 1) return std::nullopt;
  const auto is_one = [](int64_t dim) { return dim == 1; };
  const auto repeated = std::span(dims).subspan(rows.first);
  return std::ranges::all_of(repeated, is_one) ? std::optional(std::move(rows)) : std::nullopt;
}

bool GroupSpace::stretch(const RepeatedRows& rows) {
  if (space.has_reduction() || part_elements != 0) return false;
  const std::span<const int64_t> dims = rows.dims;
  if (product(dims.first(rows.first)) != space.points()) return false;
  IterationSpace stretched = space_of_rows(rows).space;
  std::vector<int64_t> kept = space.axes();
  kept.resize(std::max(kept.size(), dims.size()), 1);
  const bool is_same =
      std::ranges::equal(std::span(kept).first(rows.first), dims.first(rows.first)) &&
      kept.size() == dims.size();
  if (!is_same) {
    std::vector<int64_t> refined = space.axes();
    refined.insert(refined.end(), dims.begin() + static_cast<std::ptrdiff_t>(rows.first),
                   dims.end());
    if (!stretched.add_shape(refined)) return false;
  }
  space = std::move(stretched);
  for (auto& [value, level] : levels) level = Level::Row;
  return true;
}

bool GroupSpace::cut(const Partition& target) {
  if (target.part_elements == part_elements) return target.points == space.points();
  if (target.part_elements == 0 || space.has_reduction()) return false;
  if (space.points() % target.points != 0) return false;
  const int64_t count = space.points() / target.points;
  const int64_t elements = count * target.part_elements;
  // Parts of parts must be neighbours.
  if (part_elements != 0 && part_elements != elements) return false;
  if (space.points() % elements != 0) return false;
  const std::array<int64_t, 3> dims = {space.points() / elements, count, target.part_elements};
  if (!space.with_parts(1, target.part_elements) || count > 1) {
    if (!space.add_shape(dims)) return false;
  }
  std::optional<IterationSpace> part = space.part(count, target.part_elements);
  if (!part) return false;
  space = *std::move(part);
  part_elements = target.part_elements;
  return true;
}

int64_t GroupSpace::parts(std::span<const int64_t> dims, Level level) const {
  if (level == Level::Row) return 1;
  const int64_t elements = product(dims);
  const int64_t count = elements / space.points();
  if (elements % space.points() != 0 || count > kMaxParts) return 0;
  return count == 1 || part_elements != 0 ? count : 0;
}

std::optional<PartedSpace> GroupSpace::parted(std::span<const int64_t> dims, Level level) const {
  const int64_t count = parts(dims, level);
  if (count == 0) return std::nullopt;
  if (count == 1) return PartedSpace{space, space.axes().size()};
  return space.with_parts(count, part_elements);
}

bool GroupSpace::add_shape(std::span<const int64_t> dims) {
  const int64_t count = parts(dims, Level::Point);
  if (count == 0) return false;
  if (count == 1) return space.add_shape(dims);
  std::optional<PartedSpace> parted = space.with_parts(count, part_elements);
  if (!parted || !parted->space.add_shape(dims)) return false;
  std::optional<IterationSpace> part = parted->space.part(count, part_elements);
  if (!part) return false;
  // Whole tensors stay whole if the parts of this one have their dimensions.
  if (part->axes() != space.axes()) space = *std::move(part);
  return true;
}

std::optional<std::vector<int64_t>> parts_taken(const FusionGraph& graph, NodeId node,
                                                size_t output, const GroupSpace& group) {
  const FusionRole& role = graph.role(node);
  const std::vector<int64_t>& dims = role.input_dims[0];
  const int64_t count = group.parts(dims, Level::Point);
  const std::optional<size_t> axis = sliced_axis(dims, role.slices);
  if (count == 0 || !axis) return std::nullopt;
  const Dimension sliced = dimension_at(dims, *axis);
  const SliceRange& range = role.slices[output][*axis];
  std::vector<int64_t> taken;
  if (takes_all(range, sliced.size)) {
    for (int64_t part = 0; part < count; ++part) taken.push_back(part);
    return taken;
  }
  const int64_t elements = group.part_elements;
  if (elements == 0 || elements % sliced.inner != 0) return std::nullopt;
  const int64_t unit = elements / sliced.inner;  // of the dimension in a part
  const bool is_spread = unit == 1 && range.step == count;
  if (range.step == 1 && count * unit == sliced.size) {
    if (range.start % unit != 0 || range.count % unit != 0) return std::nullopt;
    for (int64_t part = 0; part < range.count / unit; ++part) {
      taken.push_back(range.start / unit + part);
    }
  } else if (is_spread && range.start < count && range.count * count == sliced.size) {
    taken.push_back(range.start);
  } else {
    return std::nullopt;
  }
  return taken;
}

// --- Nodes ---------------------------------------------------------------------------------------

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

std::vector<int64_t> space_dims(const FusionGraph& graph, NodeId node) {
  if (!graph.role(node).space_dims.empty()) return graph.role(node).space_dims;
  const FusionKind kind = graph.role(node).kind;
  const bool is_of_input = kind == FusionKind::Reduction || kind == FusionKind::View;
  const Node& found = graph.graph[node];
  return known_dims(graph.graph, is_of_input ? found.inputs[0] : found.outputs[0]);
}

std::optional<GroupSpace> first_space(const FusionGraph& graph, NodeId node,
                                      const Partition& target) {
  GroupSpace group = {IterationSpace(space_dims(graph, node)), 0, {}};
  if (!group.cut(target)) return std::nullopt;
  return group;
}

GroupSpace space_of_rows(const RepeatedRows& rows) {
  GroupSpace group = {IterationSpace(rows.dims), 0, {}};
  std::vector<bool> reduced(rows.dims.size(), false);
  std::fill(reduced.begin() + static_cast<std::ptrdiff_t>(rows.first), reduced.end(), true);
  group.space.reduce(rows.dims, reduced);
  return group;
}

bool add_node(const FusionGraph& graph, NodeId id, GroupSpace& group) {
  const Node& node = graph.graph[id];
  switch (graph.role(id).kind) {
    case FusionKind::None:
      return false;
    case FusionKind::Elementwise:
      return add_elementwise(graph, id, group);
    case FusionKind::View:
      // A view is free outside of a group.
      return is_inside(group, node.inputs[0]) && add_view(graph, node, group);
    case FusionKind::Slice:
      return add_slice(graph, id, group);
    case FusionKind::Concat:
      return add_parts(graph, node, node.inputs, group);
    case FusionKind::Reduction:
    case FusionKind::Normalization:
      return add_reduction(graph, id, group);
  }
  return false;
}

}  // namespace tessera::codegen
