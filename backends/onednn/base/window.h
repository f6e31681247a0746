// The window of a convolution or pooling over the spatial axes, in the conventions of oneDNN.
#pragma once

#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One entry for each spatial axis.
struct Window {
  dnnl::memory::dims kernel;
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // 0: no gaps, as oneDNN counts
  dnnl::memory::dims pads_begin;
  dnnl::memory::dims pads_end;  // as far as the windows reach
  // Whether a window reaches beyond the padding of the model (ceil_mode).
  bool reaches_beyond_padding = false;

  int64_t taps() const;
  // The extent of the kernel with its gaps.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * (dilations[axis] + 1) + 1; }
};

// The spatial sizes of [N, C, D1, ...].
dnnl::memory::dims spatial(const std::vector<int64_t>& dims);

// The window of a node with the attributes of Conv or of a pooling, between tensors of these
// spatial sizes.
Window window_of(const plugin::Attributes& attributes, const dnnl::memory::dims& kernel,
                 const dnnl::memory::dims& input, const dnnl::memory::dims& output);

// The window of the convolution that a ConvTranspose reverses.
Window transposed_window_of(const plugin::Attributes& attributes, const dnnl::memory::dims& kernel,
                            const dnnl::memory::dims& input, const dnnl::memory::dims& output);

}  // namespace tessera::onednn
