// The loops of depthwise.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

#include "base/activation.h"
#include "base/window.h"

namespace tessera::native {

// A depthwise convolution of one channel to one, for channels side by side. Distances count
// elements.
struct DepthwiseProblem {
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  int64_t channels = 0;    // side by side: of a pixel, or of a block
  int64_t from_pixel = 0;  // between neighbouring pixels of the input
  int64_t to_pixel = 0;    // between neighbouring pixels of the output
  Activation activation;
};

struct DepthwiseOperands {
  const float* from = nullptr;  // the first pixel of row `from_row`
  int64_t from_row = 0;
  const float* weights = nullptr;  // [taps, weight_stride]
  int64_t weight_stride = 0;
  const float* bias = nullptr;  // null: none
  float* to = nullptr;          // the first pixel of the row
};

// Computes one row of outputs. Null if there are no loops for the problem: they exist for 3, 5 and
// 7 taps along both axes, for equal strides of 1 and 2, without dilation.
using DepthwiseRow = void (*)(const DepthwiseProblem& problem, const DepthwiseOperands& operands,
                              int64_t row);
DepthwiseRow find_depthwise_row(const DepthwiseProblem& problem);

}  // namespace tessera::native
