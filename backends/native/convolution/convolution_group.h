// A convolution with constant weights and the nodes that can be fused with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activation.h"
#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

struct ConvolutionGroup {
  plugin::Node node;
  std::vector<int32_t> nodes;  // ascending
  int32_t result = -1;         // value
  int32_t addend = -1;         // value of the type of the convolution's output; -1: none
  Activation activation;
};

// Each function offers its candidates for the group, or throws Failure with the reason why it has
// none. direct.cc, winograd.cc, packed.cc, depthwise.cc and depthwise_planes.cc define them.
void offer_direct(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_winograd(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_packed(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_depthwise(plugin::ProposeContext& context, const ConvolutionGroup& group);
void offer_depthwise_planes(plugin::ProposeContext& context, const ConvolutionGroup& group);

// The sizes of a convolution and its window; one of lines has rows of one tap.
struct ConvolutionShape {
  int64_t images = 1;
  int64_t in_channels = 1;   // of the input
  int64_t out_channels = 1;  // of the output
  int64_t groups = 1;
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t taps() const { return rows.kernel * columns.kernel; }
};

// Throws Failure unless the Conv is of lines or images, has float32 tensors of known shape with
// elements, and constant weights.
ConvolutionShape shape_of(const plugin::Node& node);

// A candidate for the group: ports for input, weights (in the form of `pack`), bias and addend, and
// the output.
struct GroupCandidate {
  plugin::Candidate candidate;
  std::optional<size_t> bias;    // port
  std::optional<size_t> addend;  // port
};

// Whether the output may be made in the memory of the addend.
enum class Addend : uint8_t { Kept, Overwritten };

// Throws Failure if two of the inputs are one value.
GroupCandidate candidate_of(const ConvolutionGroup& group, std::string algorithm,
                            const char* input_layout, const char* output_layout,
                            std::optional<plugin::Pack> pack, Addend addend);

}  // namespace tessera::native
