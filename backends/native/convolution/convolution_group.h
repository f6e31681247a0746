// A convolution with the nodes that can be fused with it: what all kernels of convolutions offer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "matmul/gemm_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

struct ConvolutionGroup {
  plugin::Node node;
  std::vector<int32_t> nodes;  // ascending
  int32_t result = -1;         // value
  int32_t addend = -1;         // value of the type of the convolution's output; -1: none
  Activation activation = Activation::None;
  float low = 0;  // of Clip
  float high = 0;
};

// Calls `offer` for each Conv, alone and with a following sum, activation, or sum and Relu. If it
// throws Failure, the Conv is refused for that reason.
void for_each_convolution_group(plugin::ProposeContext& context,
                                const std::function<void(const ConvolutionGroup&)>& offer);

// Adds an input port, which must be the only one of its value, and returns its index. Throws
// Failure if there is one.
size_t add_input(plugin::Candidate& candidate, int32_t value, const char* layout);

// Adds the port of the addend, in whose memory the output may be made, and returns its index.
size_t add_addend(plugin::Candidate& candidate, const ConvolutionGroup& group, const char* layout);

// Throws Failure unless the Conv has float32 tensors of known shape with elements, and constant
// weights.
void check_convolution_types(const plugin::Node& node);

}  // namespace tessera::native
