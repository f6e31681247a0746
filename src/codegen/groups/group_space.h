// The space on which the nodes of a group compute: which nodes fit, and how their values lie on it.
//
// A group may cut tensors into parts and put them together again (Slice, Split, Concat). Then its
// points are those of one part: x of 2x8, of which Slice takes [:, 4:], has two parts with the
// points 2x4, and Slice takes the second one. The parts of a tensor are chunks of `part_elements`
// consecutive elements that take turns, so a value of n times as many elements as the space has
// points has n parts. A kernel computes all parts of a value at one point.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "codegen/lowering/fusion_role.h"
#include "graph/graph.h"

namespace tessera::codegen {

// Of no dimensions, 1.
int64_t product(std::span<const int64_t> dims);

// Whether a value has an element for each point, or one for all points that differ along the
// reduced axes only.
enum class Level : uint8_t { Point, Row };

// For each dimension of a tensor: the consecutive axes [first, last) that it passes through; empty
// for dimensions of 1.
struct AxisRun {
  size_t first = 0;
  size_t last = 0;
  bool is_empty() const { return first == last; }
};

struct PartedSpace;

// The points over which a fused group computes, and how the tensors of the group lie on them
// (iteration_space.cc). Axes that are fine enough for the dimensions of all tensors that were
// added: a tensor of 6x4 and one of 2x3x4 have the axes 2, 3, 4. Tensors of one shape keep their
// own dimensions as axes.
class IterationSpace {
 public:
  // The space of tensors with these dimensions, of which none is 0.
  explicit IterationSpace(std::vector<int64_t> dims);

  // The sizes of the axes.
  const std::vector<int64_t>& axes() const { return axes_; }
  const std::vector<bool>& reduced() const { return reduced_; }  // by axis
  int64_t points() const { return points_; }
  // The points that differ along the reduced axes only; 1 if none is reduced.
  int64_t row_points() const { return row_points_; }
  bool has_reduction() const { return has_reduction_; }
  // Whether the axes are the dimensions of each tensor that was added.
  bool has_one_shape() const { return has_one_shape_; }

  // Refines the axes for tensors with one element for each point. Returns false, and changes
  // nothing, if no axes fit (2x3 and 3x2).
  bool add_shape(std::span<const int64_t> dims);
  // Reduces over the dimensions of such a tensor. Returns false, and changes nothing, if the space
  // reduces over other axes already.
  bool reduce(std::span<const int64_t> dims, const std::vector<bool>& reduced_dims);
  // Adds the axes of a space with as many points. Returns false if the axes or what is reduced do
  // not fit; this space is then undefined.
  bool add_space(const IterationSpace& other);

  // The space of tensors that consist of `count` parts, each with the points of this space, as
  // chunks of `inner` elements that take turns: this space with one more axis, which is not
  // reduced. nullopt if `inner` elements are not what some of the last axes pass through.
  std::optional<PartedSpace> with_parts(int64_t count, int64_t inner) const;
  // The space of one of `count` such parts; nullopt if no axis passes through them.
  std::optional<IterationSpace> part(int64_t count, int64_t inner) const;

  // The axes of each dimension; nullopt if the dimensions do not fit the axes of that level.
  std::optional<std::vector<AxisRun>> runs(std::span<const int64_t> dims, Level level) const;

  // Whether a value of dimensions `dims` at `level`, padded with ones in front, can be read by a
  // node whose result has an element for each point and dimensions `result_dims` (of the same
  // rank).
  bool broadcasts(std::span<const int64_t> dims, Level level,
                  std::span<const int64_t> result_dims) const;

 private:
  void set_axes(std::vector<int64_t> axes);
  // The first of the axes that together have `inner` points; nullopt if there are none.
  std::optional<size_t> first_inner_axis(int64_t inner) const;

  std::vector<int64_t> axes_;
  std::vector<bool> reduced_;
  int64_t points_ = 1;
  int64_t row_points_ = 1;
  bool has_reduction_ = false;
  bool has_one_shape_ = true;
};

struct PartedSpace {
  IterationSpace space;
  size_t axis = 0;  // passes through the parts
};

// A graph with the properties that fusing often needs. The graph must outlive it.
struct FusionGraph {
  explicit FusionGraph(const Graph& graph);

  const FusionRole& role(NodeId node) const { return roles[static_cast<size_t>(node.index)]; }
  NodeId producer(ValueId value) const {
    return value.is_none() ? NodeId{} : producers[static_cast<size_t>(value.index)];
  }

  const Graph& graph;
  std::vector<FusionRole> roles;  // by node
  std::vector<NodeId> producers;  // by value
  std::vector<int> use_counts;    // by value
};

// The dimensions of a value whose type is known; {1} for a scalar.
std::vector<int64_t> known_dims(const Graph& graph, ValueId value);
// The rank of the space of a node, and its dimensions.
std::vector<int64_t> space_dims(const FusionGraph& graph, NodeId node);

// How tensors are cut.
struct Partition {
  int64_t points = 0;         // of a part
  int64_t part_elements = 0;  // consecutive elements of a part; 0: each tensor is one part
};

// The partition that a node demands because it cuts or joins values; nullopt for others. A node
// that takes one part of a value from outside of its group demands nothing.
std::optional<Partition> demanded_partition(const FusionGraph& graph, NodeId node,
                                            bool is_input_inside);
// The coarsest partition that is finer than both; nullopt if there is none.
std::optional<Partition> common_partition(const Partition& left, const Partition& right);

// The repetition of an inner value along the last dimensions of a node, such as the gate of
// squeeze-and-excite, of [2, 16, 1, 1], for a feature map of [2, 16, 7, 7].
struct RepeatedRows {
  std::vector<int64_t> dims;  // of the node
  size_t first = 0;           // the first dimension along which elements are repeated
};

// The repetition of input `index` of an elementwise node; nullopt if it is not repeated, is a
// single element, or is not repeated along the last dimensions only.
std::optional<RepeatedRows> demanded_rows(const FusionGraph& graph, NodeId node, size_t index);

// A space, and the level of each value that the nodes on it compute.
struct GroupSpace {
  IterationSpace space;             // of one part
  int64_t part_elements = 0;        // never with a reduction
  std::map<ValueId, Level> levels;  // of the outputs of each node

  Partition partition() const { return {space.points(), part_elements}; }
  // Cuts all values as `target` says. Returns false if they cannot be cut so; the group is then
  // undefined.
  bool cut(const Partition& target);
  // Makes each point a row. Returns false, and changes nothing, if a point is a row or a part
  // already, or if there are not as many points as rows.
  bool stretch(const RepeatedRows& rows);
  // How many parts a value of these dimensions has; 0 if it does not consist of parts.
  int64_t parts(std::span<const int64_t> dims, Level level) const;
  // The space of a value of these dimensions, with an axis for several parts; nullopt if it has no
  // parts. The axis of a single part is the number of axes.
  std::optional<PartedSpace> parted(std::span<const int64_t> dims, Level level) const;
  // Refines the space for values with an element for each point of some parts.
  bool add_shape(std::span<const int64_t> dims);
};

// The empty space of a group that begins with this node, cut as `target` says. nullopt if there is
// none.
std::optional<GroupSpace> first_space(const FusionGraph& graph, NodeId node,
                                      const Partition& target);

// Same as first_space(), for a group in which elements are repeated without a reduction.
GroupSpace space_of_rows(const RepeatedRows& rows);

// Extends `group` by a node. A View reads one of its values. Returns false if the node does not
// fit; `group` is then undefined. The group must be cut as the node demands.
bool add_node(const FusionGraph& graph, NodeId node, GroupSpace& group);

// The parts of input 0 that make up output `output` of a Slice of the group; nullopt if the output
// does not consist of whole parts.
std::optional<std::vector<int64_t>> parts_taken(const FusionGraph& graph, NodeId node,
                                                size_t output, const GroupSpace& group);

}  // namespace tessera::codegen
