// Fused groups as kernels in C-like languages: how work-items walk through the points, and the
// names that a language uses. Included by tessera/backend_fusion_c.h, which authors include.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/backend_fusion.h"

namespace tessera::plugin {

// How work-items walk through the points. A row: the points that differ along reduced axes only; a
// single point if the group reduces nothing.
enum class CWalk : uint8_t {
  ItemForRow,   // work-item i computes row i
  LongAxis,     // as above, but only groups of work-items divide indices: the last axis is long
  GroupForRow,  // group i computes row i together, with a tree in local memory
};

// One launch, and the properties that decide its source.
struct CKernel {
  CWalk walk = CWalk::ItemForRow;
  std::vector<LoopAxis> kept;         // at least one; strides are those of patterns
  std::vector<LoopAxis> reduced;      // at least one if the group reduces
  std::vector<size_t> patterns;       // by access, operands first: which strides it has
  std::vector<int64_t> offsets;       // by access
  std::vector<int32_t> input_ports;   // those that operands read
  std::vector<int32_t> output_ports;  // those that results write
  // Names and values of the arguments after the pointers.
  std::vector<std::pair<std::string, int32_t>> numbers;
  int32_t group_items = 64;
  int64_t groups = 1;  // below 2^31
};

// Work-items of a group: powers of two, at least 64 and at least 1.
struct CGroupSizes {
  int32_t items = 256;      // that compute a point each
  int32_t row_items = 256;  // that compute a row together
};

// The names of the functions of IEEE 754 for one type.
struct CFloatNames {
  std::string from_bits;  // of unsigned bits
  std::string to_bits;
  std::string divide = {};  // correctly rounded; empty: the operator
  std::string square_root;  // correctly rounded
  std::string fused_multiply_add;
  std::string floor;
  std::string ceiling;
  std::string truncate;
  std::string round;  // ties to even
};

// A language. Operators must round as IEEE 754 says and must not be contracted, which is a matter
// of the compiler's options and of the prelude.
struct CDialect {
  std::string prelude;           // the first lines of each source
  std::string kernel;            // the beginning of a kernel's declaration, up to its name
  std::string function;          // the same of other functions, up to the type
  std::string global;            // qualifies pointers to tensors, with a space
  std::string local;             // qualifies memory of a group, with a space
  std::string barrier;           // a call
  std::string group_number;      // an int
  std::string item_number;       // of an item in its group; an int
  std::string multiply_high;     // of two 32-bit unsigned numbers: the upper half
  std::string offset_type = {};  // of the offset after each pointer; empty: there is none
  std::array<std::string, TESSERA_STRING> types;  // by element type; those of 16-bit floats unused
  CFloatNames float32;
  CFloatNames float64;
};

namespace c_kernel_detail {

// In shorter axes, too many work-items of a group would have nothing to do.
constexpr double kMinLongAxis = 0.75;  // times the size of a group
// Rows of fewer points are computed by single work-items.
constexpr int32_t kMinSharedRow = 64;
// All devices have twice as much local memory. A reduction takes 8 bytes for each work-item.
constexpr int64_t kMaxLocalBytes = 16'384;

inline void require(bool is_met, const char* reason) {
  if (!is_met) throw Failure(TESSERA_UNSUPPORTED, reason);
}

inline int64_t points_of(const std::vector<LoopAxis>& axes) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  int64_t points = 1;
  for (const LoopAxis& axis : axes) {
    require(axis.size > 0 && axis.size <= kLimit / points, "computes less than 2^31 points only");
    points *= axis.size;
  }
  return points;
}

// Indices of elements are int32.
inline void require_small_indices(const LoopNest& nest) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  for (size_t access = 0; access < nest.offsets.size(); ++access) {
    int64_t last = nest.offsets[access];
    require(last >= 0 && last <= kLimit, "reads elements below 2^31 only");
    for (const LoopAxis& axis : nest.axes) {
      const int64_t stride = axis.strides[access];
      const bool is_small = stride >= 0 && stride <= kLimit && axis.size <= kLimit &&
                            (axis.size - 1) * stride <= kLimit - last;
      require(is_small, "reads elements below 2^31 only");
      last += (axis.size - 1) * stride;
    }
  }
}

// A size by which the kernel divides. Granlund and Montgomery, "Division by invariant integers
// using multiplication" (1994), section 4: dividends are below 2^31 and doubled, so that the magic
// number has 32 bits for a size of 1 too.
inline void add_divisor(CKernel& kernel, const std::string& name, int64_t size) {
  const auto divisor = static_cast<uint64_t>(size);
  const auto bits = static_cast<int32_t>(std::bit_width(divisor - 1));
  const uint64_t magic = ((uint64_t{1} << (31 + bits)) + divisor - 1) / divisor;
  kernel.numbers.emplace_back(name, static_cast<int32_t>(size));
  kernel.numbers.emplace_back(name + "_magic", static_cast<int32_t>(static_cast<uint32_t>(magic)));
  kernel.numbers.emplace_back(name + "_shift", bits);
}

inline std::string axis_name(bool is_reduced, size_t axis) {
  return (is_reduced ? "reduced" : "axis") + std::to_string(axis);
}

inline std::string stride_name(size_t pattern, const std::string& axis) {
  return "stride" + std::to_string(pattern) + "_" + axis;
}

inline void add_axes(CKernel& kernel, const std::vector<LoopAxis>& axes, bool is_reduced) {
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const std::string name = axis_name(is_reduced, axis);
    if (axis > 0) add_divisor(kernel, name, axes[axis].size);
    for (size_t pattern = 0; pattern < axes[axis].strides.size(); ++pattern) {
      const int64_t stride = axes[axis].strides[pattern];
      if (stride == 0 || stride == 1) continue;
      kernel.numbers.emplace_back(stride_name(pattern, name), static_cast<int32_t>(stride));
    }
  }
}

// Splits the nest into kept and reduced axes, whose strides are those of each pattern once.
inline void set_axes(const LoopNest& nest, bool reduces, CKernel& kernel) {
  std::vector<std::vector<int64_t>> patterns;
  for (size_t access = 0; access < nest.offsets.size(); ++access) {
    std::vector<int64_t> strides;
    for (const LoopAxis& axis : nest.axes) strides.push_back(axis.strides[access]);
    const auto found = std::find(patterns.begin(), patterns.end(), strides);
    kernel.patterns.push_back(static_cast<size_t>(found - patterns.begin()));
    if (found == patterns.end()) patterns.push_back(std::move(strides));
  }
  for (size_t axis = 0; axis < nest.axes.size(); ++axis) {
    LoopAxis split = {nest.axes[axis].size, nest.axes[axis].is_reduced, {}};
    for (const auto& strides : patterns) split.strides.push_back(strides[axis]);
    (split.is_reduced ? kernel.reduced : kernel.kept).push_back(std::move(split));
  }
  const std::vector<int64_t> none(patterns.size(), 0);
  if (kernel.kept.empty()) kernel.kept.push_back({1, false, none});
  if (reduces && kernel.reduced.empty()) kernel.reduced.push_back({1, true, none});
}

inline void add_port(std::vector<int32_t>& ports, int32_t port) {
  if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
}

inline int64_t groups_for(int64_t items, int32_t group_items) {
  return (items + group_items - 1) / group_items;
}

// Work-items that compute one row together, each of them several points if possible.
inline int32_t items_for_row(int64_t row_points, int64_t reductions, const CGroupSizes& sizes) {
  const auto fits = [&](int64_t items) { return reductions * 8 * items <= kMaxLocalBytes; };
  if (row_points >= int64_t{2} * sizes.row_items && fits(sizes.row_items)) return sizes.row_items;
  const int32_t items = std::min(sizes.row_items, kMinSharedRow);
  require(fits(items), "has too many reductions for the memory of a group");
  return items;
}

// Chooses the way, and adds the numbers that only this way needs.
inline void set_walk(const LoopNest& nest, int64_t reductions, const CGroupSizes& sizes,
                     CKernel& kernel) {
  const int64_t rows = points_of(kernel.kept);
  const int64_t row_points = points_of(kernel.reduced);
  require(rows <= std::numeric_limits<int32_t>::max() / row_points,
          "computes less than 2^31 points only");
  kernel.group_items = kernel.reduced.empty() ? sizes.items : kMinSharedRow;
  const int64_t last_size = kernel.kept.back().size;
  if (!kernel.reduced.empty()) {
    kernel.numbers.emplace_back("row_points", static_cast<int32_t>(row_points));
    // Neighbours in memory are read by neighbours in a group: either points of one row, or those of
    // neighbouring rows.
    const bool is_inner_kept = !nest.axes.empty() && !nest.axes.back().is_reduced;
    if (row_points >= kMinSharedRow && !(is_inner_kept && rows >= kMinSharedRow)) {
      kernel.walk = CWalk::GroupForRow;
      kernel.group_items = items_for_row(row_points, reductions, sizes);
    }
  } else if (kernel.kept.size() > 1 &&
             static_cast<double>(last_size) >= kMinLongAxis * sizes.items) {
    kernel.walk = CWalk::LongAxis;
  }
  kernel.groups = groups_for(rows, kernel.group_items);
  if (kernel.walk == CWalk::GroupForRow) kernel.groups = rows;
  if (kernel.walk == CWalk::LongAxis) {
    const int64_t axis_groups = groups_for(last_size, kernel.group_items);
    add_divisor(kernel, "axis_groups", axis_groups);
    kernel.groups = rows / last_size * axis_groups;
  } else if (kernel.walk == CWalk::ItemForRow) {
    kernel.numbers.emplace_back("rows", static_cast<int32_t>(rows));
  }
}

}  // namespace c_kernel_detail

// How a kernel walks through this nest of the group. Throws Failure (TESSERA_UNSUPPORTED) if an
// index does not fit into 31 bits, or if the group has too many reductions.
inline CKernel c_kernel(const FusedGroup& group, const LoopNest& nest,
                        const CGroupSizes& sizes = {}) {
  namespace detail = c_kernel_detail;
  CKernel kernel;
  detail::require_small_indices(nest);
  const auto reductions =
      std::count_if(group.instructions.begin(), group.instructions.end(), is_reduction);
  detail::set_axes(nest, reductions > 0, kernel);
  kernel.offsets = nest.offsets;
  for (const FusedAccess& access : group.operands)
    detail::add_port(kernel.input_ports, access.port);
  for (const FusedAccess& access : group.results)
    detail::add_port(kernel.output_ports, access.port);
  detail::set_walk(nest, reductions, sizes, kernel);
  detail::add_axes(kernel, kernel.kept, false);
  detail::add_axes(kernel, kernel.reduced, true);
  for (size_t access = 0; access < kernel.offsets.size(); ++access) {
    if (kernel.offsets[access] == 0) continue;
    kernel.numbers.emplace_back("offset" + std::to_string(access),
                                static_cast<int32_t>(kernel.offsets[access]));
  }
  return kernel;
}

}  // namespace tessera::plugin
