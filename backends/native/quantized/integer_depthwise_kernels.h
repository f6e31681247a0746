// The loops of convolutions of bytes in which each channel is convolved alone, compiled for every
// instruction set, and for AVX-512 with dot products of bytes (VNNI) once more.
#pragma once

#include <cstdint>

#include "quantized/integer_kernels.h"

namespace tessera::native {

// Some outputs of a row, whose pixels have `channels` channels side by side. Rows of taps are
// multiplied in groups; those that are missing in the last group have weights of 0.
struct IntegerDepthwise {
  // For each row of taps of all groups, the addresses of the channels of `reach` pixels: output
  // `o` multiplies tap `t` of a row by pixel o * stride + t * dilation.
  const uint8_t* const* pixels = nullptr;
  int64_t reach = 0;
  int64_t row_groups = 0;
  int64_t row_taps = 0;  // of a row
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t outputs = 0;
  int64_t channels = 0;
  bool is_left_signed = false;
  // For each block of channels: sums of weights (int32), then for each group and tap of a row the
  // weights of the rows of the group, minus their zero point, in 4 bytes for each channel. See
  // RightPanels and IntegerDepthwiseLoops.
  const int8_t* weights = nullptr;
  void* to = nullptr;
  int64_t to_stride = 0;     // elements from one output to the next
  int64_t to_bytes = 1;      // of an element
  IntegerEpilogue epilogue;  // without row sums
};

struct IntegerDepthwiseLoops {
  int64_t block = 0;      // channels
  int64_t row_group = 0;  // rows of taps: 2 with weights of int16, or 4 with weights of int8
  void (*run)(const IntegerDepthwise& part) = nullptr;

  bool has_byte_weights() const { return row_group == 4; }
  // The channel of a block whose weights are at a position: within 128 bits, bytes of four vectors
  // are joined.
  int64_t channel_at(int64_t position) const {
    if (!has_byte_weights()) return position;
    const int64_t vector = block / 4;
    return position % vector / 4 * 16 + position / vector * 4 + position % 4;
  }
};

// For the best instruction set of this processor. `fits_bytes`: weights minus their zero point are
// int8.
IntegerDepthwiseLoops find_integer_depthwise_loops(bool fits_bytes);

}  // namespace tessera::native
