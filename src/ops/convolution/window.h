// The geometry of a window that slides over the spatial axes of an input [N, C, D1, ...]: kernel,
// stride, dilation and padding. Shared by the shape rules and kernels of convolution and pooling.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "graph/dim.h"
#include "graph/graph.h"

namespace tessera::ops {

inline constexpr size_t kMaxSpatialAxes = 3;

enum class AutoPad : uint8_t { NotSet, SameUpper, SameLower, Valid };

constexpr bool is_same(AutoPad auto_pad) {
  return auto_pad == AutoPad::SameUpper || auto_pad == AutoPad::SameLower;
}

// An attribute with one number per axis, stored in the node; `fallback` if it is omitted.
struct AxisLengths {
  std::span<const int64_t> given;
  int64_t fallback = 0;

  int64_t operator[](size_t axis) const { return given.empty() ? fallback : given[axis]; }
};

// The window attributes of a node including defaults: one entry per spatial axis, each checked to
// lie in [0 or 1, 2^31).
struct WindowAttributes {
  AutoPad auto_pad = AutoPad::NotSet;
  bool rounds_up = false;  // ceil_mode
  std::span<const int64_t> kernel;
  AxisLengths strides;
  AxisLengths dilations;
  AxisLengths pads_begin;
  AxisLengths pads_end;
};

// Reads the attributes of `node` for a window of size `kernel`; both must outlive the result.
// Throws InvalidModel at the node if one is out of range or has the wrong length.
WindowAttributes read_window(const Node& node, std::span<const int64_t> kernel);

// An attribute of `length` integers in [least, 2^31); `fallback` for each if it is omitted. Throws
// InvalidModel at the node.
AxisLengths read_lengths(const Node& node, std::string_view attribute, size_t length,
                         int64_t min_value, int64_t fallback);

// The attribute auto_pad; NotSet for ops that have none. Throws InvalidModel if its value is
// unknown.
AutoPad read_auto_pad(const Node& node);

// Throws InvalidModel at `node` unless an input of `rank` axes has at least one spatial axis;
// Unsupported if it has more than kMaxSpatialAxes.
void check_spatial_rank(const Node& node, size_t rank);

// Extent of a dilated kernel along `axis`.
int64_t dilated_kernel(const WindowAttributes& window, size_t axis);

// Output length along `axis`; symbolic if the input's length is. Windows that would start in the
// padding at the end are omitted, as ONNX says. 0 if ONNX's formula gives no window, or if it is
// negative because the axis is empty. Throws InvalidModel at the node if it is negative otherwise
// or a sum exceeds 64 bits.
Dim window_output(const Node& node, const WindowAttributes& window, size_t axis, const Dim& input);

// One spatial axis with all numbers known. Tap t of output o reads input o * stride + t * dilation
// - pad_begin if that is in [0, input), else padding.
struct WindowAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
};

// The axes of a known input, with leading axes of length 1 added so that kernels need one form
// only.
using Window = std::array<WindowAxis, kMaxSpatialAxes>;
Window known_window(const Node& node, const WindowAttributes& attributes,
                    std::span<const int64_t> input_spatial);

// The taps [begin, end) that read inside the input.
struct TapRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};
TapRange taps_inside(const WindowAxis& axis, int64_t output);

// The outputs [begin, end) for which `tap` reads inside the input.
TapRange outputs_inside(const WindowAxis& axis, int64_t tap);

int64_t input_count(const Window& window);  // number of elements of one channel
int64_t output_count(const Window& window);
int64_t tap_count(const Window& window);  // number of taps of the kernel

}  // namespace tessera::ops
