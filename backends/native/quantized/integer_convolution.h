// The shape of a convolution of bytes.
#pragma once

#include <cstdint>
#include <span>

#include "base/window.h"
#include "quantized/integer_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// One of lines has rows of one tap.
struct ByteConvolution {
  int64_t images = 1;
  int64_t in_channels = 1;   // of the input
  int64_t out_channels = 1;  // of the output
  int64_t groups = 1;
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  PaddingRule padding = PaddingRule::Fixed;
  bool is_channels_last = false;  // the tensors as such, not by a layout
  bool is_row_major = false;      // the input: channels before pixels
  bool is_right_signed = true;

  int64_t taps() const { return rows.kernel * columns.kernel; }
  bool is_depthwise() const {
    return groups > 1 && groups == in_channels && in_channels == out_channels;
  }
  void set_sizes(std::span<const int64_t> input, std::span<const int64_t> output);
  ByteConvolution resized(std::span<const int64_t> input, std::span<const int64_t> output) const {
    ByteConvolution other = *this;
    other.set_sizes(input, output);
    return other;
  }
};

// For convolutions of each channel alone. Throws Failure if it offers none.
void offer_integer_depthwise(plugin::ProposeContext& context, IntegerOffer offer,
                             const ByteConvolution& shape);

// Throws Failure unless it is of lines or images, with elements and constant weights.
ByteConvolution byte_convolution_of(const IntegerOffer& offer);

}  // namespace tessera::native
