// The points over which a fused group computes, and how the tensors of the group lie on them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

// Axes that are fine enough for the dimensions of all tensors that were added: a tensor of 6x4 and
// one of 2x3x4 have the axes 2, 3, 4. Tensors of one shape keep their own dimensions as axes.
struct PartedSpace;

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

}  // namespace tessera::codegen
