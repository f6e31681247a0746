// Conv of planes in row-major order, each by windows of its own (depthwise): of images and of
// lines, with any taps, strides and dilations. Fused with a following activation.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  int64_t images = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;    // a multiple of in_channels
  std::optional<size_t> bias;  // port

  int64_t row_tiles() const { return divide_up(problem.rows().output, problem.tile_rows()); }
  int64_t column_tiles() const {
    return divide_up(problem.columns().output, problem.tile_columns());
  }
  int64_t tiles() const { return images * out_channels * row_tiles() * column_tiles(); }
  int64_t output_elements() const {
    return images * out_channels * problem.rows().output * problem.columns().output;
  }
  int64_t slots(int64_t threads) const {
    const int64_t worth = output_elements() * int64_t{sizeof(float)} / kPlaneGrainBytes + 1;
    return std::min({std::max<int64_t>(threads, 1), tiles(), worth});
  }
  int64_t buffer_bytes() const { return problem.buffer_elements() * int64_t{sizeof(float)}; }
  double flops() const {
    return 2 * static_cast<double>(output_elements()) *
           static_cast<double>(problem.tap_offsets().size());
  }
};

class DepthwisePlanesKernel : public plugin::Kernel {
 public:
  DepthwisePlanesKernel(PlanesWork work, int64_t threads)
      : work_(std::move(work)), slots_(work_.slots(threads)), compute_tile_(find_plane_loop()) {}

  int64_t workspace_bytes() const override { return slots_ * work_.buffer_bytes(); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    PlaneOperands all = {.from = inputs[0].as<const float>(),
                         .weights = inputs[1].as<const float>(),
                         .to = outputs[0].as<float>()};
    const float* bias = work_.bias ? inputs[*work_.bias].as<const float>() : nullptr;
    auto* const buffers = static_cast<float*>(context.workspace());
    SharedParts parts(work_.tiles(), slots_);
    context.parallel_for(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        PlaneOperands operands = all;
        operands.buffer = buffers + slot * work_.problem.buffer_elements();
        parts.for_each(slot, [&](int64_t part) { run_part(part, operands, bias); });
      }
    });
  }

 private:
  // A part is a tile; the tiles of a plane are neighbours.
  void run_part(int64_t part, PlaneOperands operands, const float* bias) const {
    const PlaneProblem& problem = work_.problem;
    const int64_t column = part % work_.column_tiles() * problem.tile_columns();
    part /= work_.column_tiles();
    const int64_t row = part % work_.row_tiles() * problem.tile_rows();
    const int64_t plane = part / work_.row_tiles();
    const int64_t channel = plane % work_.out_channels;
    const int64_t in_plane = plane / (work_.out_channels / work_.in_channels);
    operands.from += in_plane * problem.rows().input * problem.columns().input;
    operands.weights += channel * static_cast<int64_t>(problem.tap_offsets().size());
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
  int64_t slots_;
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
          .images = shape.images,
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
  made.candidate.workspace_bytes = work.slots(context.options().threads) * work.buffer_bytes();
  const Node& node = group.node;
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  made.candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  made.candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<DepthwisePlanesKernel>(work, options.threads);
  };
  context.add(std::move(made.candidate));
}

}  // namespace tessera::native
