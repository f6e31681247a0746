// The window of a convolution or pooling over one or two spatial axes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

// Rows and columns. With one spatial axis, there is one row.
using Window = std::array<plugin::WindowAxis, 2>;

// `kernel` are the sizes of the kernel. Throws Failure (TESSERA_UNSUPPORTED) for other numbers of
// spatial axes.
Window window_of(const plugin::Node& node, std::span<const int64_t> kernel);

// An axis of the output before its rows and columns, and how many planes of the input further on
// its next element is. `more` are the strides of further operands of the grid.
struct PlaneAxis {
  int64_t count = 1;
  int64_t planes = 1;
  std::vector<int64_t> more = {};
};

// A launch in which each work-item computes one element of the output, without source and name. Its
// arguments are those for WINDOW_PARAMETERS and then AXES(NAME_stride) for each of `more_names`.
//
// The source uses WINDOW_BEGIN and GRID_LOOP (grid.h). There, the window of GRID_INDEX begins at
// row WINDOW_TOP and column WINDOW_LEFT of the input's plane at WINDOW_PLANE. TAP_ROWS and
// TAP_COLUMNS are the sizes of the kernel, as constants if they are small: then compilers unroll
// FOR_TAPS(i, j) and compute several elements at once. There, TAP_IS_INSIDE(top, left, i, j) says
// whether a tap reads the input, and TAP_POSITION(top, left, i, j) where in the plane; 0 if not.
Launch window_launch(const Window& window, const std::vector<PlaneAxis>& planes,
                     const std::vector<std::string_view>& more_names = {});

}  // namespace tessera::opencl
