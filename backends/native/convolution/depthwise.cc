// Conv of one channel to one, in layouts with contiguous channels, fused with a following
// activation.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/divide_up.h"
#include "base/refusal.h"
#include "convolution/convolution_group.h"
#include "convolution/depthwise.h"
#include "convolution/depthwise_kernels.h"
#include "layout/feature_map.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::WindowAxis;

namespace {

// The minimum number of bytes of the output for one thread.
constexpr int64_t kDepthwiseGrainBytes = 16 * 1024;

// An output row and the input rows that it reads should stay in the first-level cache.
constexpr int64_t kRowsBytes = 32 * 1024;

constexpr std::array kDepthwiseLayouts = {ChannelLayout::Nhwc, ChannelLayout::Nchw16c};

// The computation of a kernel; ports are indices of inputs.
struct DepthwiseWork {
  DepthwiseProblem problem;
  ConvolutionSizes sizes;
  PaddingRule padding = PaddingRule::Fixed;
  int64_t channels = 1;     // of an image; the problem has those that are computed together
  bool is_blocked = false;  // in blocks of channels
  std::optional<size_t> bias;

  double flops() const {
    return 2 * static_cast<double>(sizes.images * channels * sizes.out_rows * sizes.out_columns) *
           static_cast<double>(problem.rows.kernel * problem.columns.kernel);
  }
  void set_sizes(const ConvolutionSizes& other) {
    sizes = other;
    set_window(sizes, padding, problem.rows, problem.columns);
    problem.channels = is_blocked ? kChannelUnit : channels_together(problem, channels);
  }
};

class DepthwiseKernel : public plugin::Kernel {
 public:
  explicit DepthwiseKernel(const DepthwiseWork& work)
      : work_(work), compute_row_(find_depthwise_row(work.problem)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_,
                  [&](const DepthwiseWork& work) { run_work(context, work, inputs, outputs); });
  }

 private:
  void run_work(RunContext& context, const DepthwiseWork& work, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) const {
    const DepthwiseProblem& problem = work.problem;
    const int64_t input_pixels = problem.rows.input * problem.columns.input;
    const int64_t output_pixels = problem.rows.output * problem.columns.output;
    const int64_t chunks = divide_up(work.channels, problem.channels);
    const float* bias = work.bias ? inputs[*work.bias].as<const float>() : nullptr;
    const int64_t part_bytes = problem.columns.output * problem.channels * int64_t{sizeof(float)};
    // A part is a row of outputs, for some channels; rows of the same channels are neighbours.
    const int64_t parts = work.sizes.images * chunks * problem.rows.output;
    context.parallel_for(
        parts, kDepthwiseGrainBytes / (part_bytes + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t part = begin; part < end; ++part) {
            const int64_t row = part % problem.rows.output;
            const int64_t channel = part / problem.rows.output % chunks * problem.channels;
            const int64_t image = part / problem.rows.output / chunks;
            DepthwiseProblem own = problem;
            own.channels = std::min(problem.channels, work.channels - channel);
            // In blocks, a chunk is a block.
            const int64_t first = work.is_blocked ? 0 : channel;
            const int64_t before = image * work.channels + channel - first;  // planes
            compute_row_(own,
                         {.from = inputs[0].as<const float>() + before * input_pixels + first,
                          .weights = inputs[1].as<const float>() + channel,
                          .weight_stride = work.channels,
                          .bias = bias == nullptr ? nullptr : bias + channel,
                          .to = outputs[0].as<float>() + before * output_pixels + first +
                                row * problem.columns.output * problem.to_pixel},
                         row);
          }
        });
  }

  DepthwiseWork work_;
  DepthwiseRow compute_row_;
};

// --- Offering ------------------------------------------------------------------------------------

DepthwiseWork depthwise_work(const ConvolutionGroup& group) {
  const ConvolutionShape shape = shape_of(group.node);
  if (shape.groups != shape.in_channels || shape.groups != shape.out_channels ||
      shape.groups == 1) {
    refuse("is offered for convolutions of each channel alone only");
  }
  if (group.addend >= 0) refuse("adds nothing to a convolution of each channel alone");
  return {.problem = {.rows = shape.rows, .columns = shape.columns, .activation = group.activation},
          .sizes = shape.sizes(),
          .padding = shape.padding,
          .channels = shape.in_channels};
}

void offer_in(ProposeContext& context, const ConvolutionGroup& group, DepthwiseWork work,
              ChannelLayout layout) {
  work.is_blocked = layout == ChannelLayout::Nchw16c;
  // The lanes behind the last channel would have to be cleared.
  if (work.is_blocked && work.channels % kChannelUnit != 0) return;
  work.problem.from_pixel = work.is_blocked ? kChannelUnit : work.channels;
  work.problem.to_pixel = work.problem.from_pixel;
  work.set_sizes(work.sizes);
  if (find_depthwise_row(work.problem) == nullptr) {
    refuse("has 3, 5 or 7 taps along both axes, and equal strides of 1 or 2, without dilation");
  }
  const Node& node = group.node;
  const char* name = layout_name(layout);
  GroupCandidate made = candidate_of(group, "depthwise", name, name,
                                     taps_first_pack(work.problem, work.channels), Addend::Kept);
  work.bias = made.bias;
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  made.candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  made.candidate.build = [work](const plugin::BuildOptions&) {
    return std::make_unique<DepthwiseKernel>(work);
  };
  context.add(std::move(made.candidate));
}

}  // namespace

int64_t channels_together(const DepthwiseProblem& problem, int64_t channels) {
  const int64_t row_bytes = (problem.rows.kernel * problem.columns.input + problem.columns.output) *
                            int64_t{sizeof(float)};
  const int64_t fitting = kRowsBytes / row_bytes / kChannelUnit * kChannelUnit;
  return std::clamp(fitting, kChannelUnit, std::max(kChannelUnit, channels));
}

plugin::Pack taps_first_pack(const DepthwiseProblem& problem, int64_t channels) {
  const int64_t taps = problem.rows.kernel * problem.columns.kernel;
  plugin::Pack pack;
  pack.id = "taps_first_" + std::to_string(taps);
  pack.bytes = taps * channels * int64_t{sizeof(float)};
  pack.pack = [taps, channels](RunContext&, const Buffer& from, void* to) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        static_cast<float*>(to)[tap * channels + channel] =
            from.as<const float>()[channel * taps + tap];
      }
    }
  };
  return pack;
}

void offer_depthwise(ProposeContext& context, const ConvolutionGroup& group) {
  const DepthwiseWork work = depthwise_work(group);
  for (const ChannelLayout layout : kDepthwiseLayouts) offer_in(context, group, work, layout);
}

}  // namespace tessera::native
