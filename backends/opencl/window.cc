#include "window.h"

#include <utility>

#include "grid.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;

namespace {

constexpr const char* kWindowSource = R"(
#define WINDOW_PARAMETERS \
  int in_rows, int kernel_rows, int dilation_rows, int pad_top, int pad_bottom, int in_columns, \
  int kernel_columns, int dilation_columns, int pad_left, int pad_right, GRID_PARAMETERS, \
  AXES(plane_stride), AXES(row_stride), AXES(column_stride)
#define WINDOW_BEGIN \
  GRID_BEGIN \
  GRID_BASE(plane) \
  GRID_BASE(row) \
  GRID_BASE(column)
#define WINDOW_PLANE GRID_POSITION(plane)
#define WINDOW_TOP (GRID_POSITION(row) - pad_top)
#define WINDOW_LEFT (GRID_POSITION(column) - pad_left)
#define TAP_ROW(top, i) ((top) + (i) * dilation_rows)
#define TAP_COLUMN(left, j) ((left) + (j) * dilation_columns)
// A negative number is a large one without a sign.
#define TAP_IS_INSIDE(top, left, i, j) \
  (((uint)TAP_ROW(top, i) < (uint)in_rows) & ((uint)TAP_COLUMN(left, j) < (uint)in_columns))
#define TAP_POSITION(top, left, i, j) \
  (TAP_IS_INSIDE(top, left, i, j) ? TAP_ROW(top, i) * in_columns + TAP_COLUMN(left, j) : 0)
#define FOR_TAPS(i, j) \
  _Pragma(UNROLLS) for (int i = 0; i < TAP_ROWS; ++i) \
  _Pragma(UNROLLS) for (int j = 0; j < TAP_COLUMNS; ++j)
)";

constexpr int64_t kMaxUnrolledTaps = 49;

std::string window_definitions(const Window& window) {
  const int64_t rows = window[0].kernel;
  const int64_t columns = window[1].kernel;
  const bool is_small = rows * columns <= kMaxUnrolledTaps;
  return define("TAP_ROWS", is_small ? std::to_string(rows) : "kernel_rows") +
         define("TAP_COLUMNS", is_small ? std::to_string(columns) : "kernel_columns") +
         define("UNROLLS", is_small ? "\"unroll\"" : "\"unroll 1\"") + kWindowSource;
}

}  // namespace

Window window_of(const Node& node, std::span<const int64_t> kernel) {
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  const size_t rank = kernel.size();
  if (rank < 1 || rank > 2 || input.size() != rank + 2 || output.size() != rank + 2) {
    throw Failure(TESSERA_UNSUPPORTED, "has windows over one or two axes only");
  }
  const std::vector<plugin::WindowAxis> axes = plugin::window_axes(
      node.attributes(), kernel, std::span(input).subspan(2), std::span(output).subspan(2));
  Window window;
  for (size_t axis = 0; axis < rank; ++axis) window[2 - rank + axis] = axes[axis];
  return window;
}

Launch window_launch(const Window& window, const std::vector<PlaneAxis>& planes,
                     const std::vector<std::string_view>& more_names) {
  const auto& [rows, columns] = window;
  StridedSpace space;
  space.strides.resize(3 + more_names.size());
  for (const PlaneAxis& axis : planes) {
    space.size.push_back(axis.count);
    space.strides[0].push_back(axis.planes * rows.input * columns.input);
    space.strides[1].push_back(0);
    space.strides[2].push_back(0);
    for (size_t index = 0; index < more_names.size(); ++index) {
      space.strides[3 + index].push_back(axis.more[index]);
    }
  }
  space.size.insert(space.size.end(), {rows.output, columns.output});
  for (std::vector<int64_t>& strides : space.strides) strides.insert(strides.end(), {0, 0});
  space.strides[1].end()[-2] = rows.stride;
  space.strides[2].back() = columns.stride;
  std::vector<std::string_view> names = {"plane", "row", "column"};
  names.insert(names.end(), more_names.begin(), more_names.end());
  const Grid grid = make_grid(space, names);
  Launch launch{.definitions = grid.definitions + window_definitions(window),
                .groups = grid.groups,
                .group_items = grid.group_items};
  for (const plugin::WindowAxis& axis : window) {
    for (const int64_t number :
         {axis.input, axis.kernel, axis.dilation, axis.pad_begin, axis.pad_end}) {
      launch.arguments.emplace_back(narrow(number));
    }
  }
  launch.arguments.insert(launch.arguments.end(), grid.arguments.begin(), grid.arguments.end());
  return launch;
}

}  // namespace tessera::opencl
