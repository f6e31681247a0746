// The window that a pooling or a convolution slides over the spatial axes.
// The reference has its own of these in src/ops, which a plug-in cannot include and should not: an
// optimised path that shared code with what it is judged by would share its mistakes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// Tap t of output o reads input o * stride + t * dilation - pad_begin where that lies in
// [0, input), else padding.
struct WindowAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
};

// Taps [begin, end).
struct TapRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

// The taps that read inside the input.
TapRange taps_inside(const WindowAxis& axis, int64_t output);

// Those that read inside the input or the padding that the model asks for.
int64_t taps_inside_padding(const WindowAxis& axis, int64_t output);

// Three axes, those that there are not of length 1 in front.
using Window = std::array<WindowAxis, 3>;

// Of a node with the attributes of Conv or of a pooling, between tensors of these sizes. Throws
// Failure (TESSERA_UNSUPPORTED) where it has no or more than three spatial axes.
Window window_of(const plugin::Attributes& attributes, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& input, const std::vector<int64_t>& output);

}  // namespace tessera::native
