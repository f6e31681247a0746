// The loops of convolutions of bytes in which each channel is convolved alone, compiled for every
// instruction set.
#pragma once

#include <cstdint>

#include "quantized/integer_kernels.h"

namespace tessera::native {

// Some outputs of a row, whose pixels have `channels` channels side by side.
struct IntegerDepthwise {
  // For each output, one pointer for each tap, to the channels of the pixel that it reads. Their
  // number is even: the last one of an odd number has weights of 0.
  const uint8_t* const* pixels = nullptr;
  int64_t taps = 0;
  int64_t outputs = 0;
  int64_t channels = 0;
  bool is_left_signed = false;
  // For each vector of channels: sums of weights (int32), then the weights as int16, minus their
  // zero point, of two taps side by side. See RightPanels.
  const int8_t* weights = nullptr;
  void* to = nullptr;
  int64_t to_stride = 0;     // elements from one output to the next
  int64_t to_bytes = 1;      // of an element
  IntegerEpilogue epilogue;  // without row sums
};

struct IntegerDepthwiseLoops {
  int64_t lanes = 0;  // channels of a vector
  void (*run)(const IntegerDepthwise& part) = nullptr;
};

// For the best instruction set of this processor.
IntegerDepthwiseLoops find_integer_depthwise_loops();

}  // namespace tessera::native
