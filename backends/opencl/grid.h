// How work-items walk over tensors that are read with strides. Copies, products and reductions use
// it; fused groups have loops of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "work.h"

namespace tessera::opencl {

// A space of indices and, for each operand, the distance in elements between neighbours along each
// axis. The last axis is the fastest.
struct StridedSpace {
  std::vector<int64_t> size;
  std::vector<std::vector<int64_t>> strides;  // by operand, then by axis
};

// An equal space with as few axes as possible: without axes of one element, and with axes merged
// that every operand walks through as one. It has at least one axis.
StridedSpace merged(const StridedSpace& space);

// Definitions for sources that walk through `rank` axes. AXES(name) are the parameters for a number
// of each axis, SIZES(name) those for divisors() of the sizes. LAST_AXIS(name) is the number of the
// last axis. POSITION(index, size, stride) is the position at `index` if one counts through `size`,
// the last axis fastest; ROW_POSITION() is the same without the last axis. QUOTIENT(number, size)
// divides by one of SIZES(). Processors divide vectors of integers slowly or not at all, so it
// multiplies.
std::string axes_definitions(size_t rank);
std::vector<int32_t> divisors(const std::vector<int64_t>& sizes);

// Work-items for a space. Sources use GRID_PARAMETERS, then AXES(name_stride) for each operand;
// GRID_BEGIN; GRID_BASE(name) for each operand; and GRID_LOOP before the statement that computes
// one index. There, GRID_INDEX is its number and GRID_POSITION(name) the element of an operand.
struct Grid {
  std::string definitions;
  std::vector<Argument> arguments;  // for GRID_PARAMETERS and the strides
  int64_t groups = 1;
  int32_t group_items = kGroupItems;
};

// `names` are those of the operands. Throws Failure (TESSERA_UNSUPPORTED) if too many axes remain.
Grid make_grid(const StridedSpace& space, const std::vector<std::string_view>& names);

}  // namespace tessera::opencl
