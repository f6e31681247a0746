// Proposes 3 x 3 convolutions by Winograd's algorithm, fused with a following sum and Relu, in
// layouts with contiguous channels.
#include "convolution/winograd.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "convolution/convolution_group.h"
#include "layout/feature_map.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::WindowAxis;

namespace {

// Channels must be whole blocks.
constexpr int64_t kBlock = 16;

// With fewer tiles, Winograd's algorithm does not pay, because the transformed weights that it
// reads are two or four times as large.
constexpr int64_t kMinTiles = 9;

constexpr std::array kWinogradLayouts = {ChannelLayout::Nchw16c, ChannelLayout::Nhwc};

bool is_supported(const WindowAxis& axis) {
  return axis.kernel == kTaps && axis.stride == 1 && axis.dilation == 1;
}

// The problem, except for the fields that depend on the layout and on fused nodes.
WinogradProblem winograd_problem(const Node& node) {
  const ConvolutionShape shape = shape_of(node);
  if (shape.groups != 1) refuse("is offered for convolutions with group = 1 only");
  if (!is_supported(shape.rows) || !is_supported(shape.columns)) {
    refuse("is offered for 3 x 3 taps, stride 1, without dilation");
  }
  if (shape.in_channels % kBlock != 0 || shape.out_channels % kBlock != 0) {
    refuse("takes channels in multiples of 16 only");
  }
  WinogradProblem problem = {.padding = shape.padding,
                             .in_channels = shape.in_channels,
                             .out_channels = shape.out_channels,
                             .rows = shape.rows,
                             .columns = shape.columns};
  problem.set_sizes(shape.sizes());
  return problem;
}

void set_layout(ChannelLayout layout, WinogradProblem& problem) {
  const bool is_blocked = layout == ChannelLayout::Nchw16c;
  problem.input.pixel = is_blocked ? kBlock : problem.in_channels;
  problem.output.pixel = is_blocked ? kBlock : problem.out_channels;
  problem.set_sizes(problem.sizes);
}

void offer_in(ProposeContext& context, const ConvolutionGroup& group, WinogradProblem problem,
              ChannelLayout layout) {
  const Node& node = group.node;
  set_layout(layout, problem);
  const char* name = layout_name(layout);
  GroupCandidate made = candidate_of(group, problem.tile == 4 ? "winograd_4x4" : "winograd_2x2",
                                     name, name, winograd_pack(problem), Addend::Overwritten);
  problem.bias = made.bias;
  problem.addend = made.addend;
  Candidate& candidate = made.candidate;
  problem.has_relu = group.activation.kind == ActivationKind::Relu;
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = problem.workspace_bytes(threads);
  candidate.workspace_for = workspace_for(problem, threads);
  // Weights are prefetched, so they are read about twice as fast as data that is not.
  const auto bytes = static_cast<double>(node.input(0).type().dense_bytes() +
                                         node.output(0).type().dense_bytes()) +
                     static_cast<double>(problem.transformed_bytes()) / 2;
  candidate.optimistic_seconds = context.optimistic_seconds(problem.gemm_flops(), bytes);
  candidate.build = [problem](const plugin::BuildOptions& options) {
    return make_winograd_kernel(problem, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void offer_winograd(ProposeContext& context, const ConvolutionGroup& group) {
  WinogradProblem problem = winograd_problem(group.node);
  if (group.activation.kind != ActivationKind::None &&
      group.activation.kind != ActivationKind::Relu)
    return;
  bool is_offered = false;
  for (const int64_t tile : {4, 2}) {
    problem.tile = tile;
    if (problem.tiles() < kMinTiles) continue;
    problem.panel = winograd_panel(problem, context.options().threads);
    for (const ChannelLayout layout : kWinogradLayouts) offer_in(context, group, problem, layout);
    is_offered = true;
  }
  if (!is_offered) refuse("does not pay for an output with so few pixels");
}

}  // namespace tessera::native
