// Conv by its definition where each output reads few channels: grouped convolutions, and the first
// one of a network; fused with a following sum and activation.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "convolution/convolution_group.h"
#include "convolution/direct_kernels.h"
#include "layout/feature_map.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// With more channels in one group, products by packed weights are faster.
constexpr int64_t kMaxChannelsOfOneGroup = 16;

// The weights of the outputs that are computed together should stay in a core's cache.
constexpr int64_t kMaxDirectDepth = 1024;

// The computation of a kernel; ports are indices of inputs. With groups in a vector, a vector of
// channels counts as one group.
struct DirectWork {
  DirectProblem problem;
  ConvolutionSizes sizes;
  PaddingRule padding = PaddingRule::Fixed;
  bool is_row_major = false;  // the input
  int64_t groups = 1;
  int64_t in_group = 1;      // elements from the inputs of a group to those of the next
  int64_t out_channels = 1;  // of a group
  int64_t lanes = 1;
  std::optional<size_t> bias;
  std::optional<size_t> addend;

  int64_t depth() const {
    return problem.rows.kernel * problem.columns.kernel * problem.in_channels;
  }
  int64_t group_floats() const { return divide_up(out_channels, lanes) * lanes * depth(); }
  // The operations of all computed lanes, also of those behind the last channel.
  double flops() const {
    return 2 * static_cast<double>(sizes.images * sizes.out_rows * sizes.out_columns) *
           static_cast<double>(groups * group_floats());
  }
  void set_sizes(const ConvolutionSizes& other) {
    sizes = other;
    set_window(sizes, padding, problem.rows, problem.columns);
    if (is_row_major) problem.in_channel = sizes.in_rows * sizes.in_columns;
  }
};

class DirectKernel : public plugin::Kernel {
 public:
  explicit DirectKernel(const DirectWork& work)
      : work_(work), loops_(find_direct_loops(work.problem)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_,
                  [&](const DirectWork& work) { run_work(context, work, inputs, outputs); });
  }

 private:
  void run_work(RunContext& context, const DirectWork& work, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) const {
    const int64_t blocks = divide_up(work.out_channels, loops_.channels);
    // A part is a row of outputs for some channels; rows of the same channels are neighbours.
    const int64_t parts = work.sizes.images * work.groups * blocks * work.sizes.out_rows;
    const double part_flops = work.flops() / static_cast<double>(parts);
    const auto grain = static_cast<int64_t>(kGrainFlops / (part_flops + 1)) + 1;
    context.parallel_for(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t row = part % work.sizes.out_rows;
        const int64_t block = part / work.sizes.out_rows;
        run_row(work, inputs, outputs, block / blocks, block % blocks * loops_.channels, row);
      }
    });
  }

  // `group` counts those of all images; `channel` is one of the group.
  void run_row(const DirectWork& work, std::span<const Buffer> inputs,
               std::span<const Buffer> outputs, int64_t group, int64_t channel, int64_t row) const {
    const DirectProblem& problem = work.problem;
    const int64_t image = group / work.groups;
    group %= work.groups;
    const int64_t input_image =
        problem.rows.input * problem.columns.input * work.groups * work.in_group;
    const int64_t first = group * work.out_channels + channel;
    const int64_t to =
        (image * problem.rows.output + row) * problem.columns.output * problem.out_pixel + first;
    DirectOperands operands;
    operands.from = inputs[0].as<const float>() + image * input_image + group * work.in_group;
    operands.weights =
        inputs[1].as<const float>() + group * work.group_floats() + channel * work.depth();
    if (work.bias) operands.bias = inputs[*work.bias].as<const float>() + first;
    if (work.addend) operands.addend = inputs[*work.addend].as<const float>() + to;
    operands.to = outputs[0].as<float>() + to;
    operands.channels = std::min(loops_.channels, work.out_channels - channel);
    loops_.compute_row(problem, operands, row);
  }

  DirectWork work_;
  DirectLoops loops_;
};

// --- Offering ------------------------------------------------------------------------------------

// The work for an input in nhwc.
DirectWork direct_work(const ConvolutionGroup& group) {
  const ConvolutionShape shape = shape_of(group.node);
  DirectWork work = {.problem = {.rows = shape.rows,
                                 .columns = shape.columns,
                                 .in_channels = shape.group_inputs(),
                                 .in_pixel = shape.in_channels,
                                 .out_pixel = shape.out_channels,
                                 .activation = group.activation},
                     .sizes = shape.sizes(),
                     .padding = shape.padding,
                     .groups = shape.groups,
                     .in_group = shape.group_inputs(),
                     .out_channels = shape.out_channels / shape.groups};
  const bool has_few = shape.groups > 1
                           ? work.out_channels > 1
                           : shape.in_channels <= kMaxChannelsOfOneGroup && shape.taps() > 1;
  if (!has_few || work.depth() > kMaxDirectDepth) refuse("is offered for few input channels only");
  const int64_t lanes = find_direct_loops(work.problem).lanes;
  work.lanes = lanes;
  const bool is_square = work.out_channels == work.problem.in_channels;
  if (is_square && work.out_channels < lanes && lanes % work.out_channels == 0 &&
      shape.out_channels % lanes == 0) {
    work.problem.has_groups_in_vector = true;
    work.groups = shape.out_channels / lanes;
    work.in_group = work.out_channels = lanes;
  }
  return work;
}

// Weights [output channels, in_channels, rows, columns] in the order of DirectOperands.
plugin::Pack direct_pack(const DirectWork& work, int64_t block) {
  const DirectProblem& problem = work.problem;
  plugin::Pack pack;
  pack.id = std::string(problem.has_groups_in_vector ? "groups" : "direct") + "_" +
            std::to_string(work.groups) + "_" + std::to_string(block) + "_" +
            std::to_string(work.lanes);
  pack.bytes = work.groups * work.group_floats() * kFloatBytes;
  pack.pack = [work, block](RunContext&, const Buffer& from, void* to) {
    const DirectProblem& of = work.problem;
    const int64_t columns = of.columns.kernel;
    const int64_t taps = of.rows.kernel * columns;
    auto* target = static_cast<float*>(to);
    for (int64_t first = 0; first < work.groups * work.out_channels;) {
      const int64_t channel = first % work.out_channels;
      const int64_t count = std::min(block, work.out_channels - channel);
      const int64_t width = divide_up(count, work.lanes) * work.lanes;
      for (int64_t line = 0; line < work.depth(); ++line, target += width) {
        const int64_t column = line % columns;
        const int64_t input = line / columns % of.in_channels;
        const int64_t tap = line / columns / of.in_channels * columns + column;
        for (int64_t lane = 0; lane < count; ++lane) {
          target[lane] =
              from.as<const float>()[((first + lane) * of.in_channels + input) * taps + tap];
        }
        std::fill(target + count, target + width, 0.0F);
      }
      first += count;
    }
  };
  return pack;
}

void offer_from(ProposeContext& context, const ConvolutionGroup& group, DirectWork work,
                const char* layout) {
  const DirectLoops loops = find_direct_loops(work.problem);
  const Node& node = group.node;
  // The last outputs of a row may be computed twice, so the addend must not be overwritten.
  GroupCandidate made = candidate_of(group, "direct", layout, layout_name(ChannelLayout::Nhwc),
                                     direct_pack(work, loops.channels), Addend::Kept);
  work.bias = made.bias;
  work.addend = made.addend;
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  made.candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  made.candidate.build = [work](const plugin::BuildOptions&) {
    return std::make_unique<DirectKernel>(work);
  };
  accept_any_address(context.graph(), made.candidate);
  context.add(std::move(made.candidate));
}

}  // namespace

void offer_direct(ProposeContext& context, const ConvolutionGroup& group) {
  DirectWork work = direct_work(group);
  offer_from(context, group, work, layout_name(ChannelLayout::Nhwc));
  if (work.groups > 1 || work.problem.has_groups_in_vector) return;
  work.is_row_major = true;
  work.problem.in_pixel = 1;
  work.set_sizes(work.sizes);
  offer_from(context, group, work, TESSERA_LAYOUT_DEFAULT);
}

}  // namespace tessera::native
