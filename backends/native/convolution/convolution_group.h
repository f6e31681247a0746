// A convolution with constant weights and the nodes that can be fused with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/activation.h"
#include "tessera/backend.h"

namespace tessera::native {

struct ConvolutionGroup {
  plugin::Node node;
  std::vector<int32_t> nodes;  // ascending
  int32_t result = -1;         // value
  int32_t addend = -1;         // value of the type of the convolution's output; -1: none
  Activation activation;
};

// Each offers what it has for the group, or throws Failure with the reason why it has nothing.
// direct.cc, winograd.cc, packed.cc and depthwise.cc define them.
void offer_direct(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_winograd(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_packed(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_depthwise(plugin::ProposeContext& context, const ConvolutionGroup& group);

// Adds an input port, which must be the only one of its value, and returns its index. Throws
// Failure if there is one.
size_t add_input(plugin::Candidate& candidate, int32_t value, const char* layout);

// Adds the port of the addend, in whose memory the output may be made, and returns its index.
size_t add_addend(plugin::Candidate& candidate, const ConvolutionGroup& group, const char* layout);

// Throws Failure unless the Conv has float32 tensors of known shape with elements, and constant
// weights.
void check_convolution_types(const plugin::Node& node);

}  // namespace tessera::native
