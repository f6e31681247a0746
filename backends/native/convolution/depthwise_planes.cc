// Conv of planes in row-major order, each by windows of its own (depthwise): of images and of
// lines, with any taps, strides and dilations. Fused with a following activation.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/refusal.h"
#include "base/shared_parts.h"
#include "convolution/convolution_group.h"
#include "convolution/depthwise_planes_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// The minimum number of bytes of the output for one thread.
constexpr int64_t kPlaneGrainBytes = 16 * 1024;
// With windows that reach further, most of what is copied for a tile would not be used. The first
// limit also keeps the sizes of a model's making from overflowing.
constexpr int64_t kMaxReach = 64 * 1024;  // elements
constexpr int64_t kMaxBufferBytes = 256 * 1024;

struct PlanesWork {
  PlaneProblem problem;
  ConvolutionSizes sizes;
  PaddingRule padding = PaddingRule::Fixed;
  int64_t in_channels = 1;
  int64_t out_channels = 1;    // a multiple of in_channels
  std::optional<size_t> bias;  // port

  int64_t row_tiles() const { return divide_up(problem.rows().output, problem.tile_rows()); }
  int64_t column_tiles() const {
    return divide_up(problem.columns().output, problem.tile_columns());
  }
  int64_t tiles() const { return sizes.images * out_channels * row_tiles() * column_tiles(); }
  int64_t output_elements() const {
    return sizes.images * out_channels * sizes.out_rows * sizes.out_columns;
  }
  int64_t slots(int64_t threads) const {
    const int64_t worth = output_elements() * int64_t{sizeof(float)} / kPlaneGrainBytes + 1;
    return std::min({std::max<int64_t>(threads, 1), tiles(), worth});
  }
  int64_t buffer_bytes() const { return problem.buffer_elements() * int64_t{sizeof(float)}; }
  // The offsets of the taps depend on the sizes, so the workspace begins with them. The kernel
  // keeps those for the sizes of the proposal.
  int64_t offsets_bytes() const {
    constexpr int64_t kLineBytes = 64;
    return divide_up(problem.taps() * int64_t{sizeof(int64_t)}, kLineBytes) * kLineBytes;
  }
  int64_t workspace_bytes(int64_t threads) const {
    return offsets_bytes() + slots(threads) * buffer_bytes();
  }
  double flops() const {
    return 2 * static_cast<double>(output_elements()) * static_cast<double>(problem.taps());
  }
  void set_sizes(const ConvolutionSizes& other) {
    sizes = other;
    plugin::WindowAxis rows = problem.rows();
    plugin::WindowAxis columns = problem.columns();
    set_window(sizes, padding, rows, columns);
    problem = PlaneProblem(rows, columns, problem.activation());
  }
};

class DepthwisePlanesKernel : public plugin::Kernel {
 public:
  DepthwisePlanesKernel(const PlanesWork& work, int64_t threads)
      : work_(work),
        threads_(threads),
        tap_offsets_(static_cast<size_t>(work.problem.taps())),
        compute_tile_(find_plane_loop()) {
    work.problem.write_tap_offsets(tap_offsets_.data());
  }

  int64_t workspace_bytes() const override { return work_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_,
                  [&](const PlanesWork& work) { run_work(context, work, inputs, outputs); });
  }

 private:
  void run_work(RunContext& context, const PlanesWork& work, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) const {
    PlaneOperands all = {.from = inputs[0].as<const float>(),
                         .weights = inputs[1].as<const float>(),
                         .tap_offsets = tap_offsets_.data(),
                         .to = outputs[0].as<float>()};
    const float* bias = work.bias ? inputs[*work.bias].as<const float>() : nullptr;
    if (&work != &work_) {
      auto* const offsets = static_cast<int64_t*>(context.workspace());
      work.problem.write_tap_offsets(offsets);
      all.tap_offsets = offsets;
    }
    auto* const buffers =
        reinterpret_cast<float*>(static_cast<char*>(context.workspace()) + work.offsets_bytes());
    const int64_t buffer_elements = work.problem.buffer_elements();
    const int64_t slots = work.slots(threads_);
    SharedParts parts(work.tiles(), slots);
    context.parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        PlaneOperands operands = all;
        operands.buffer = buffers + slot * buffer_elements;
        parts.for_each(slot, [&](int64_t part) { run_part(work, part, operands, bias); });
      }
    });
  }

  // A part is a tile; the tiles of a plane are neighbours.
  void run_part(const PlanesWork& work, int64_t part, PlaneOperands operands,
                const float* bias) const {
    const PlaneProblem& problem = work.problem;
    const int64_t column = part % work.column_tiles() * problem.tile_columns();
    part /= work.column_tiles();
    const int64_t row = part % work.row_tiles() * problem.tile_rows();
    const int64_t plane = part / work.row_tiles();
    const int64_t channel = plane % work.out_channels;
    const int64_t in_plane = plane / (work.out_channels / work.in_channels);
    operands.from += in_plane * problem.rows().input * problem.columns().input;
    operands.weights += channel * problem.taps();
    operands.to += plane * problem.rows().output * problem.columns().output;
    if (bias != nullptr) operands.bias = bias[channel];
    compute_tile_(problem,
                  {.first_row = row,
                   .first_column = column,
                   .rows = std::min(problem.tile_rows(), problem.rows().output - row),
                   .columns = std::min(problem.tile_columns(), problem.columns().output - column)},
                  operands);
  }

  PlanesWork work_;
  int64_t threads_;
  std::vector<int64_t> tap_offsets_;
  PlaneLoop compute_tile_;
};

PlanesWork planes_work(const ConvolutionGroup& group) {
  const ConvolutionShape shape = shape_of(group.node);
  if (shape.groups != shape.in_channels || shape.groups == 1) {
    refuse("is offered for convolutions of each channel alone only");
  }
  if (group.addend >= 0) refuse("adds nothing to a convolution of each channel alone");
  for (const plugin::WindowAxis& axis : {shape.rows, shape.columns}) {
    if (std::max(axis.extent(), axis.stride) > kMaxReach) refuse("the window reaches too far");
  }
  return {.problem = PlaneProblem(shape.rows, shape.columns, group.activation),
          .sizes = shape.sizes(),
          .padding = shape.padding,
          .in_channels = shape.in_channels,
          .out_channels = shape.out_channels};
}

}  // namespace

void offer_depthwise_planes(ProposeContext& context, const ConvolutionGroup& group) {
  PlanesWork work = planes_work(group);
  if (work.buffer_bytes() > kMaxBufferBytes) refuse("the window reaches too far");
  GroupCandidate made = candidate_of(group, "depthwise", TESSERA_LAYOUT_DEFAULT,
                                     TESSERA_LAYOUT_DEFAULT, std::nullopt, Addend::Kept);
  work.bias = made.bias;
  const int64_t threads = context.options().threads;
  made.candidate.workspace_bytes = work.workspace_bytes(threads);
  made.candidate.workspace_for = workspace_for(work, threads);
  const Node& node = group.node;
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  made.candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  made.candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<DepthwisePlanesKernel>(work, options.threads);
  };
  accept_any_address(context.graph(), made.candidate);
  context.add(std::move(made.candidate));
}

}  // namespace tessera::native
