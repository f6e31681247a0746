#include "convolution/depthwise_strips.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "convolution/depthwise.h"
#include "matmul/gemm_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;
using plugin::WindowAxis;

namespace {

// The size of a strip's values between the convolutions, which should stay in the second-level
// cache with the weights.
constexpr int64_t kStripBytes = 384 * 1024;

// The gap between the buffers of two threads. A core that reads the channels of neighbouring pixels
// also fetches pixels behind the last one, and must not take them from the core that writes them.
constexpr int64_t kGapElements = 16 * 1024;

// Strips for each thread, if there are enough rows, so that a thread on a slow core does fewer.
constexpr int64_t kStripsOfSlot = 4;

// How the work is divided. Rows are those of the depthwise convolution.
struct StripDivision {
  int64_t strip_rows = 1;   // outputs
  int64_t expand_rows = 0;  // inputs that these read, at most; 0 if none are expanded
  int64_t expand_row = 0;   // elements of an expanded row of a panel
  int64_t panels = 0;       // of expanded channels
  int64_t row = 0;          // elements of a row of outputs
  int64_t strips = 1;       // of an image
  int64_t slots = 1;
  bool is_projected = false;

  int64_t panel_elements() const { return expand_rows * expand_row; }
  int64_t expand_elements() const { return panels * panel_elements(); }
  int64_t slot_elements() const {
    return expand_elements() + (is_projected ? strip_rows * row : 0);
  }
  int64_t slot_stride() const { return slot_elements() + kGapElements; }
  int64_t workspace_bytes() const {
    return ((slots - 1) * slot_stride() + slot_elements()) * kFloatBytes;
  }
};

StripDivision division_of(const DepthwiseStrips& strips, int64_t threads) {
  const WindowAxis& rows = strips.depthwise.rows;
  const WindowAxis& columns = strips.depthwise.columns;
  const int64_t panel = find_gemm_loops().panel;
  StripDivision division = {.expand_row = columns.input * panel,
                            .panels = divide_up(strips.channels, panel),
                            .row = columns.output * strips.channels,
                            .is_projected = strips.project.has_value()};
  const auto with_rows = [&](int64_t count) {
    StripDivision made = division;
    made.strip_rows = count;
    if (strips.expand) made.expand_rows = (count - 1) * rows.stride + rows.extent();
    return made;
  };
  const auto worth = static_cast<int64_t>(strips.flops() / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t wanted = threads == 1 ? 1 : divide_up(kStripsOfSlot * threads, strips.sizes.images);
  const int64_t most = std::max<int64_t>(rows.output / wanted, 1);
  int64_t count = 1;
  while (count < most && with_rows(count + 1).slot_elements() * kFloatBytes <= kStripBytes) ++count;
  division = with_rows(divide_up(rows.output, divide_up(rows.output, count)));
  division.strips = divide_up(rows.output, division.strip_rows);
  division.slots = std::min(threads, strips.sizes.images * division.strips);
  return division;
}

// A run between tensors of known sizes.
class StripsRun {
 public:
  StripsRun(const DepthwiseStrips& strips, const StripDivision& division, DepthwiseRow compute_row,
            const GemmLoops& loops)
      : strips_(strips), division_(division), compute_row_(compute_row), loops_(loops) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) const {
    auto* const buffers = static_cast<float*>(context.workspace());
    SharedParts parts(strips_.sizes.images * division_.strips, division_.slots);
    context.parallel_for(division_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        Slot own = {.inputs = inputs,
                    .to = outputs[0].as<float>(),
                    .expanded = buffers + slot * division_.slot_stride()};
        own.filtered = own.expanded + division_.expand_elements();
        parts.for_each(slot, [&](int64_t part) { run_part(part, own); });
      }
    });
  }

 private:
  // The buffers of a thread, and the rows [begin, end) of `image` that it has expanded.
  struct Slot {
    std::span<const Buffer> inputs;
    float* to = nullptr;
    float* expanded = nullptr;  // by panel of channels; a pixel has the channels of the panel
    float* filtered = nullptr;  // results of the depthwise convolution that are projected
    int64_t image = -1;
    int64_t begin = 0;
    int64_t end = 0;

    const float* input(std::optional<size_t> port) const {
      return port ? inputs[*port].as<const float>() : nullptr;
    }
  };

  // The rows of inputs that a strip reads.
  struct Reach {
    int64_t image = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t kept = 0;  // the number of first rows that are expanded already
  };

  // A part is a strip of an image.
  void run_part(int64_t part, Slot& slot) const {
    const WindowAxis& rows = strips_.depthwise.rows;
    const int64_t row = part % division_.strips * division_.strip_rows;
    const int64_t count = std::min(division_.strip_rows, rows.output - row);
    const Reach reach = reach_of(part / division_.strips, row, count, slot);
    const int64_t first = reach.image * rows.output + row;
    float* const filtered = strips_.project ? slot.filtered : slot.to + first * division_.row;
    const int64_t step = strips_.expand ? loops_.panel : strips_.depthwise.channels;
    for (int64_t channel = 0; channel < strips_.channels; channel += step) {
      DepthwiseProblem own = strips_.depthwise;
      own.channels = std::min(step, strips_.channels - channel);
      DepthwiseOperands operands = {.to = filtered + channel};
      if (strips_.expand) {
        // The depthwise convolution reads the panel while it is in the cache.
        own.from_pixel = loops_.panel;
        operands.from = expand(reach, channel, slot);
        operands.from_row = reach.begin;
      } else {
        const int64_t pixel = reach.image * rows.input * own.columns.input;
        operands.from = slot.input(0) + pixel * strips_.channels + channel;
      }
      filter(own, operands, channel, row, count, slot);
    }
    slot.image = reach.image;
    slot.begin = reach.begin;
    slot.end = reach.end;
    if (!strips_.project) return;
    const PointwiseStage& stage = *strips_.project;
    const int64_t pixels = strips_.depthwise.columns.output;
    const int64_t offset = first * pixels * stage.out_channels;
    const float* addend = slot.input(strips_.addend);
    for (int64_t column = 0; column < stage.out_channels; column += loops_.panel) {
      multiply(stage, column, slot, filtered, count * pixels, slot.to + offset + column,
               stage.out_channels, addend == nullptr ? nullptr : addend + offset + column);
    }
  }

  Reach reach_of(int64_t image, int64_t row, int64_t count, const Slot& slot) const {
    const WindowAxis& rows = strips_.depthwise.rows;
    const int64_t start = row * rows.stride - rows.pad_begin;
    // Windows may lie in the padding as a whole.
    Reach reach = {.image = image, .begin = std::clamp<int64_t>(start, 0, rows.input)};
    reach.end = std::clamp<int64_t>(start + (count - 1) * rows.stride + rows.extent(), reach.begin,
                                    rows.input);
    if (slot.image == image && reach.begin >= slot.begin && reach.begin < slot.end) {
      reach.kept = std::min(slot.end, reach.end) - reach.begin;
    }
    return reach;
  }

  // Expands a panel of channels from `channel` on. Returns its first row, which is reach.begin.
  const float* expand(const Reach& reach, int64_t channel, const Slot& slot) const {
    const PointwiseStage& stage = *strips_.expand;
    float* const to = slot.expanded + channel / loops_.panel * division_.panel_elements();
    if (reach.kept > 0 && reach.begin != slot.begin) {
      std::memmove(to, to + (reach.begin - slot.begin) * division_.expand_row,
                   static_cast<size_t>(reach.kept * division_.expand_row * kFloatBytes));
    }
    const int64_t row = reach.begin + reach.kept;
    if (row == reach.end) return to;
    const int64_t pixels = strips_.depthwise.columns.input;
    const int64_t first = (reach.image * strips_.depthwise.rows.input + row) * pixels;
    multiply(stage, channel, slot, slot.input(0) + first * stage.in_channels,
             (reach.end - row) * pixels, to + reach.kept * division_.expand_row, loops_.panel,
             nullptr);
    return to;
  }

  // A panel of output channels from `column` on.
  void multiply(const PointwiseStage& stage, int64_t column, const Slot& slot, const float* from,
                int64_t pixels, float* to, int64_t to_pixel, const float* addend) const {
    const float* bias = slot.input(stage.bias);
    GemmBlock block = {.left = from,
                       .left_row_stride = stage.in_channels,
                       .right = slot.input(stage.weights) + column * stage.in_channels,
                       .right_depth_stride = loops_.panel,
                       .rows = pixels,
                       .columns = std::min(loops_.panel, stage.out_channels - column),
                       .depth = stage.in_channels,
                       .to = to,
                       .to_row_stride = to_pixel};
    block.epilogue = {.bias = bias == nullptr ? nullptr : bias + column,
                      .addend = addend,
                      .addend_row_stride = stage.out_channels,
                      .addend_column_stride = 1,
                      .activation = stage.activation};
    loops_.padded(block);
  }

  // Computes `count` rows of the depthwise convolution from `row` on, for channels from `channel`
  // on.
  void filter(const DepthwiseProblem& problem, DepthwiseOperands operands, int64_t channel,
              int64_t row, int64_t count, const Slot& slot) const {
    const float* bias = slot.input(strips_.depthwise_bias);
    operands.weights = slot.input(strips_.depthwise_weights) + channel;
    operands.weight_stride = strips_.channels;
    operands.bias = bias == nullptr ? nullptr : bias + channel;
    for (int64_t each = 0; each < count; ++each, operands.to += division_.row) {
      compute_row_(problem, operands, row + each);
    }
  }

  const DepthwiseStrips& strips_;
  const StripDivision& division_;
  DepthwiseRow compute_row_;
  const GemmLoops& loops_;
};

class StripsKernel : public plugin::Kernel {
 public:
  StripsKernel(const DepthwiseStrips& strips, int64_t threads)
      : strips_(strips),
        threads_(threads),
        division_(division_of(strips, threads)),
        compute_row_(find_depthwise_row(strips.depthwise)),
        loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return division_.workspace_bytes(); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], strips_, [&](const DepthwiseStrips& strips) {
      const bool is_proposed = &strips == &strips_;
      const StripDivision division = is_proposed ? division_ : division_of(strips, threads_);
      StripsRun(strips, division, compute_row_, loops_).run(context, inputs, outputs);
    });
  }

 private:
  // For the sizes of the proposal.
  DepthwiseStrips strips_;
  int64_t threads_;
  StripDivision division_;
  DepthwiseRow compute_row_;
  GemmLoops loops_;
};

int64_t pixels_of(const WindowAxis& rows, const WindowAxis& columns, bool is_output) {
  return is_output ? rows.output * columns.output : rows.input * columns.input;
}

}  // namespace

void DepthwiseStrips::set_sizes(const ConvolutionSizes& other) {
  sizes = other;
  set_window(sizes, padding, depthwise.rows, depthwise.columns);
  depthwise.channels = channels_together(depthwise, channels);
}

int64_t DepthwiseStrips::workspace_bytes(int64_t threads) const {
  return division_of(*this, threads).workspace_bytes();
}

double DepthwiseStrips::flops() const {
  const auto& [rows, columns] = std::pair(depthwise.rows, depthwise.columns);
  const auto inputs = static_cast<double>(sizes.images * pixels_of(rows, columns, false));
  const auto outputs = static_cast<double>(sizes.images * pixels_of(rows, columns, true));
  const auto weights_of = [](const PointwiseStage& stage) {
    return static_cast<double>(stage.in_channels * stage.out_channels);
  };
  double total = outputs * static_cast<double>(channels * rows.kernel * columns.kernel);
  if (expand) total += inputs * weights_of(*expand);
  if (project) total += outputs * weights_of(*project);
  return 2 * total;
}

int64_t DepthwiseStrips::saved_bytes() const {
  const auto& [rows, columns] = std::pair(depthwise.rows, depthwise.columns);
  int64_t pixels = 0;
  if (expand) pixels += pixels_of(rows, columns, false);
  if (project) pixels += pixels_of(rows, columns, true);
  return pixels * channels * kFloatBytes;
}

std::unique_ptr<plugin::Kernel> make_strips_kernel(const DepthwiseStrips& strips, int64_t threads) {
  return std::make_unique<StripsKernel>(strips, threads);
}

}  // namespace tessera::native
