// A convolution with constant weights and the nodes that can be fused with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/activation.h"
#include "base/window.h"
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

// The sizes that a kernel reads from its buffers in each run. Those of channels and taps are sizes
// of the constant weights.
struct ConvolutionSizes {
  int64_t images = 1;
  int64_t in_rows = 1;  // of the input
  int64_t in_columns = 1;
  int64_t out_rows = 1;  // of the output
  int64_t out_columns = 1;

  bool operator==(const ConvolutionSizes&) const = default;
};

ConvolutionSizes sizes_of(const plugin::Buffer& input, const plugin::Buffer& output);

// Gives the window of a convolution other sizes. If it is one of lines, its rows have one tap.
inline void set_window(const ConvolutionSizes& sizes, PaddingRule padding, plugin::WindowAxis& rows,
                       plugin::WindowAxis& columns) {
  set_sizes(rows, padding, sizes.in_rows, sizes.out_rows);
  set_sizes(columns, padding, sizes.in_columns, sizes.out_columns);
}

// Calls body(work) with the work for the sizes of these buffers: with `proposed` itself if they are
// the sizes of the proposal, since most kernels run only with these. A `Work` has a member `sizes`
// and a function set_sizes(), which allocates nothing.
template <class Work, class Body>
void with_sizes_of(const plugin::Buffer& input, const plugin::Buffer& output, const Work& proposed,
                   const Body& body) {
  const ConvolutionSizes sizes = sizes_of(input, output);
  if (sizes == proposed.sizes) return body(proposed);
  Work other = proposed;
  other.set_sizes(sizes);
  body(other);
}

// The workspace for other sizes of a `Work` with workspace_bytes(threads).
template <class Work>
auto workspace_for(const Work& proposed, int64_t threads) {
  return [proposed, threads](std::span<const plugin::Buffer> inputs,
                             std::span<const plugin::Buffer> outputs) {
    Work other = proposed;
    other.set_sizes(sizes_of(inputs[0], outputs[0]));
    return other.workspace_bytes(threads);
  };
}

// A convolution and its window; one of lines has rows of one tap.
struct ConvolutionShape {
  int64_t images = 1;
  int64_t in_channels = 1;   // of the input
  int64_t out_channels = 1;  // of the output
  int64_t groups = 1;
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  PaddingRule padding = PaddingRule::Fixed;

  ConvolutionSizes sizes() const {
    return {images, rows.input, columns.input, rows.output, columns.output};
  }
  int64_t group_inputs() const { return in_channels / groups; }
  int64_t taps() const { return rows.kernel * columns.kernel; }
};

// Throws Failure unless the Conv is of lines or images, has float32 tensors of known shape with
// elements, and constant weights.
ConvolutionShape shape_of(const plugin::Node& node);

// A candidate for the group: ports for input, weights (in the form of `pack`), bias and addend, and
// the output. It is built for the sizes of channels and weights.
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
