// The window that a convolution or a pooling slides over the spatial axes, as oneDNN counts.
#pragma once

#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One entry for each spatial axis.
struct Window {
  dnnl::memory::dims kernel;
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // 0: neighbours, as oneDNN counts
  dnnl::memory::dims pads_begin;
  dnnl::memory::dims pads_end;  // as much as the windows reach
  // Whether a window reaches beyond the padding that the model asks for (ceil_mode).
  bool reaches_beyond_padding = false;

  int64_t taps() const;
  // Extent of the kernel with its gaps.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * (dilations[axis] + 1) + 1; }
};

// The spatial sizes of [N, C, D1, ...].
dnnl::memory::dims spatial(const std::vector<int64_t>& dims);

// Of a node with the attributes of Conv or of a pooling, between tensors of these spatial sizes.
Window window_of(const plugin::Attributes& attributes, const dnnl::memory::dims& kernel,
                 const dnnl::memory::dims& input, const dnnl::memory::dims& output);

// Of a ConvTranspose: the window of the convolution that it reverses.
Window transposed_window_of(const plugin::Attributes& attributes, const dnnl::memory::dims& kernel,
                            const dnnl::memory::dims& input, const dnnl::memory::dims& output);

}  // namespace tessera::onednn
