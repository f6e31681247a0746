#include "codegen/groups/group_space.h"

#include <algorithm>

namespace tessera::codegen {
namespace {

// The axes into which both lists of the same product divide; nullopt if there are none.
std::optional<std::vector<int64_t>> common_refinement(std::span<const int64_t> left,
                                                      std::span<const int64_t> right) {
  std::vector<int64_t> axes;  // the innermost first
  size_t left_at = left.size();
  size_t right_at = right.size();
  int64_t left_rest = 1;
  int64_t right_rest = 1;
  while (true) {
    while (left_rest == 1 && left_at > 0) left_rest = left[--left_at];
    while (right_rest == 1 && right_at > 0) right_rest = right[--right_at];
    if (left_rest == 1 && right_rest == 1) break;
    const int64_t axis = std::min(left_rest, right_rest);
    if (axis <= 1 || left_rest % axis != 0 || right_rest % axis != 0) return std::nullopt;
    left_rest /= axis;
    right_rest /= axis;
    axes.push_back(axis);
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

}  // namespace

IterationSpace::IterationSpace(std::vector<int64_t> dims)
    : axes_(std::move(dims)), reduced_(axes_.size(), false), points_(product(axes_)) {}

bool IterationSpace::add_shape(std::span<const int64_t> dims) {
  if (std::ranges::equal(dims, axes_)) return true;
  std::optional<std::vector<int64_t>> axes = common_refinement(axes_, dims);
  if (!axes) return false;
  has_one_shape_ = false;
  set_axes(*std::move(axes));
  return true;
}

// The new axes divide the old ones.
void IterationSpace::set_axes(std::vector<int64_t> axes) {
  std::vector<bool> reduced;
  size_t old = 0;
  int64_t rest = axes_.empty() ? 1 : axes_[0];
  for (const int64_t axis : axes) {
    while (rest == 1 && old + 1 < axes_.size()) rest = axes_[++old];
    reduced.push_back(reduced_[old]);
    rest /= axis;
  }
  axes_ = std::move(axes);
  reduced_ = std::move(reduced);
}

bool IterationSpace::reduce(std::span<const int64_t> dims, const std::vector<bool>& reduced_dims) {
  const std::optional<std::vector<AxisRun>> found = runs(dims, Level::Point);
  if (!found) return false;
  std::vector<bool> reduced(axes_.size(), false);
  int64_t row_points = 1;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    if (!reduced_dims[dim]) continue;
    for (size_t axis = (*found)[dim].first; axis < (*found)[dim].last; ++axis) {
      reduced[axis] = true;
      row_points *= axes_[axis];
    }
  }
  if (has_reduction_) {
    // Axes of one point may be reduced or not.
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axes_[axis] != 1 && reduced[axis] != reduced_[axis]) return false;
    }
    return true;
  }
  has_reduction_ = true;
  reduced_ = std::move(reduced);
  row_points_ = row_points;
  return true;
}

bool IterationSpace::add_space(const IterationSpace& other) {
  if (other.points_ != points_) return false;
  const std::vector<int64_t> shape = other.axes_;
  if (!add_shape(shape)) return false;
  has_one_shape_ = has_one_shape_ && other.has_one_shape_;
  return !other.has_reduction_ || reduce(shape, other.reduced_);
}

std::optional<size_t> IterationSpace::first_inner_axis(int64_t inner) const {
  size_t axis = axes_.size();
  int64_t points = 1;
  while (points < inner && axis > 0) points *= axes_[--axis];
  return points == inner ? std::optional(axis) : std::nullopt;
}

std::optional<PartedSpace> IterationSpace::with_parts(int64_t count, int64_t inner) const {
  const std::optional<size_t> axis = first_inner_axis(inner);
  if (!axis) return std::nullopt;
  PartedSpace parted = {*this, *axis};
  const auto at = static_cast<std::ptrdiff_t>(*axis);
  parted.space.axes_.insert(parted.space.axes_.begin() + at, count);
  parted.space.reduced_.insert(parted.space.reduced_.begin() + at, false);
  parted.space.points_ *= count;
  parted.space.has_one_shape_ = false;
  return parted;
}

std::optional<IterationSpace> IterationSpace::part(int64_t count, int64_t inner) const {
  const std::optional<size_t> last = first_inner_axis(inner);
  if (!last) return std::nullopt;
  // Refining drops axes of one point, but not that of several parts.
  size_t axis = *last;
  while (axis > 0 && axes_[axis - 1] == 1) --axis;
  if (count != 1 && (axis == 0 || axes_[axis - 1] != count)) return std::nullopt;
  IterationSpace space = *this;
  if (count == 1) return space;
  const auto at = static_cast<std::ptrdiff_t>(axis - 1);
  space.axes_.erase(space.axes_.begin() + at);
  space.reduced_.erase(space.reduced_.begin() + at);
  space.points_ /= count;
  return space;
}

std::optional<std::vector<AxisRun>> IterationSpace::runs(std::span<const int64_t> dims,
                                                         Level level) const {
  std::vector<AxisRun> found(dims.size());
  // Axes that this level does not have, and axes of one point, belong to no dimension.
  const auto is_skipped = [&](size_t axis) {
    return axes_[axis] == 1 || (level == Level::Row && reduced_[axis]);
  };
  size_t axis = axes_.size();
  for (size_t dim = dims.size(); dim-- > 0;) {
    if (dims[dim] == 1) continue;
    while (axis > 0 && is_skipped(axis - 1)) --axis;
    const size_t last = axis;
    int64_t rest = dims[dim];
    while (rest > 1) {
      // A dimension does not reach over an axis that the level does not have.
      if (axis == 0 || (axes_[axis - 1] != 1 && is_skipped(axis - 1))) return std::nullopt;
      --axis;
      if (rest % axes_[axis] != 0) return std::nullopt;
      rest /= axes_[axis];
    }
    found[dim] = {axis, last};
  }
  while (axis > 0 && is_skipped(axis - 1)) --axis;
  if (axis > 0) return std::nullopt;
  return found;
}

bool IterationSpace::broadcasts(std::span<const int64_t> dims, Level level,
                                std::span<const int64_t> result_dims) const {
  if (level == Level::Point) return std::ranges::equal(dims, result_dims);
  const std::optional<std::vector<AxisRun>> result = runs(result_dims, Level::Point);
  if (!result || dims.size() != result_dims.size()) return false;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    const AxisRun run = (*result)[dim];
    if (run.is_empty()) {
      if (dims[dim] != 1) return false;
      continue;
    }
    // A dimension is reduced as a whole, or kept as a whole.
    const bool is_reduced = reduced_[run.first];
    for (size_t axis = run.first; axis < run.last; ++axis) {
      if (axes_[axis] != 1 && reduced_[axis] != is_reduced) return false;
    }
    if (dims[dim] != (is_reduced ? 1 : result_dims[dim])) return false;
  }
  return true;
}

int64_t product(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace tessera::codegen
