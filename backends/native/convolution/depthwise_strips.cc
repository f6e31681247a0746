#include "convolution/depthwise_strips.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/divide_up.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "matmul/gemm_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;
using plugin::WindowAxis;

namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// What a strip has of the values between the convolutions should stay in the second-level cache,
// with the weights.
constexpr int64_t kStripBytes = 384 * 1024;

// Between the buffers of two threads. A core that walks through the channels of neighbouring pixels
// also fetches pixels behind the last one, and must not take them from the core that writes them.
constexpr int64_t kGapElements = 16 * 1024;

// Strips for each thread, if there are enough rows, so that a thread on a slow core does fewer.
constexpr int64_t kStripsOfSlot = 4;

// How the work is divided. Rows are those of the depthwise convolution.
struct Division {
  int64_t strip_rows = 1;  // outputs
  int64_t expand_rows =
      0;                   // inputs that the outputs of a strip read, at most; 0: none are expanded
  int64_t expand_row = 0;  // elements of an expanded row
  int64_t row = 0;         // elements of a row of outputs
  int64_t strips = 1;      // of an image
  int64_t slots = 1;
  bool is_projected = false;

  int64_t expand_elements() const { return expand_rows * expand_row; }
  int64_t slot_elements() const {
    return expand_elements() + (is_projected ? strip_rows * row : 0);
  }
  int64_t slot_stride() const { return slot_elements() + kGapElements; }
  int64_t workspace_bytes() const {
    return ((slots - 1) * slot_stride() + slot_elements()) * kFloatBytes;
  }
};

Division division_of(const DepthwiseStrips& strips, int64_t threads) {
  const WindowAxis& rows = strips.depthwise.rows;
  const WindowAxis& columns = strips.depthwise.columns;
  Division division = {.expand_row = columns.input * strips.channels,
                       .row = columns.output * strips.channels,
                       .is_projected = strips.project.has_value()};
  const auto with_rows = [&](int64_t count) {
    Division made = division;
    made.strip_rows = count;
    if (strips.expand) made.expand_rows = (count - 1) * rows.stride + rows.extent();
    return made;
  };
  const auto worth = static_cast<int64_t>(strips.flops() / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t wanted = threads == 1 ? 1 : divide_up(kStripsOfSlot * threads, strips.images);
  const int64_t most = std::max<int64_t>(rows.output / wanted, 1);
  int64_t count = 1;
  while (count < most && with_rows(count + 1).slot_elements() * kFloatBytes <= kStripBytes) ++count;
  division = with_rows(divide_up(rows.output, divide_up(rows.output, count)));
  division.strips = divide_up(rows.output, division.strip_rows);
  division.slots = std::min(threads, strips.images * division.strips);
  return division;
}

class StripsKernel : public plugin::Kernel {
 public:
  StripsKernel(const DepthwiseStrips& strips, int64_t threads)
      : strips_(strips),
        division_(division_of(strips, threads)),
        compute_row_(find_depthwise_row(strips.depthwise)),
        loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return division_.workspace_bytes(); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    auto* const buffers = static_cast<float*>(context.workspace());
    SharedParts parts(strips_.images * division_.strips, division_.slots);
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
  // What a thread works with, and the rows [begin, end) of `image` that it has expanded.
  struct Slot {
    std::span<const Buffer> inputs;
    float* to = nullptr;
    float* expanded = nullptr;
    float* filtered = nullptr;  // results of the depthwise convolution that are projected
    int64_t image = -1;
    int64_t begin = 0;
    int64_t end = 0;

    const float* input(std::optional<size_t> port) const {
      return port ? inputs[*port].as<const float>() : nullptr;
    }
  };

  // A part is a strip of an image.
  void run_part(int64_t part, Slot& slot) const {
    const WindowAxis& rows = strips_.depthwise.rows;
    const int64_t image = part / division_.strips;
    const int64_t row = part % division_.strips * division_.strip_rows;
    const int64_t count = std::min(division_.strip_rows, rows.output - row);
    const int64_t start = row * rows.stride - rows.pad_begin;
    // Windows may lie in the padding as a whole.
    const int64_t begin = std::clamp<int64_t>(start, 0, rows.input);
    const int64_t end =
        std::clamp<int64_t>(start + (count - 1) * rows.stride + rows.extent(), begin, rows.input);
    const float* from = slot.input(0) + image * rows.input * division_.expand_row;
    int64_t from_row = 0;
    if (strips_.expand) {
      expand(image, begin, end, slot);
      from = slot.expanded;
      from_row = begin;
    }
    const int64_t first = image * rows.output + row;
    float* const filtered = strips_.project ? slot.filtered : slot.to + first * division_.row;
    filter(from, from_row, row, count, filtered, slot);
    if (!strips_.project) return;
    const PointwiseStage& stage = *strips_.project;
    const int64_t pixels = strips_.depthwise.columns.output;
    const int64_t offset = first * pixels * stage.out_channels;
    const float* addend = slot.input(strips_.addend);
    multiply(stage, slot, filtered, count * pixels, slot.to + offset,
             addend == nullptr ? nullptr : addend + offset);
  }

  // Rows [begin, end) of the image are in slot.expanded afterwards; those that are there are kept.
  void expand(int64_t image, int64_t begin, int64_t end, Slot& slot) const {
    const PointwiseStage& stage = *strips_.expand;
    int64_t done = begin;
    if (slot.image == image && begin >= slot.begin && begin < slot.end) {
      done = std::min(slot.end, end);
      std::memmove(slot.expanded, slot.expanded + (begin - slot.begin) * division_.expand_row,
                   static_cast<size_t>((done - begin) * division_.expand_row * kFloatBytes));
    }
    slot.image = image;
    slot.begin = begin;
    slot.end = end;
    if (done == end) return;
    const int64_t pixels = strips_.depthwise.columns.input;
    const int64_t first = (image * strips_.depthwise.rows.input + done) * pixels;
    multiply(stage, slot, slot.input(0) + first * stage.in_channels, (end - done) * pixels,
             slot.expanded + (done - begin) * division_.expand_row, nullptr);
  }

  void multiply(const PointwiseStage& stage, const Slot& slot, const float* from, int64_t pixels,
                float* to, const float* addend) const {
    const float* weights = slot.input(stage.weights);
    const float* bias = slot.input(stage.bias);
    for (int64_t column = 0; column < stage.out_channels; column += loops_.panel) {
      GemmBlock block = {.left = from,
                         .left_row_stride = stage.in_channels,
                         .right = weights + column * stage.in_channels,
                         .right_depth_stride = loops_.panel,
                         .rows = pixels,
                         .columns = std::min(loops_.panel, stage.out_channels - column),
                         .depth = stage.in_channels,
                         .to = to + column,
                         .to_row_stride = stage.out_channels};
      block.epilogue = {.bias = bias == nullptr ? nullptr : bias + column,
                        .addend = addend == nullptr ? nullptr : addend + column,
                        .addend_row_stride = stage.out_channels,
                        .addend_column_stride = 1,
                        .activation = stage.activation};
      loops_.padded(block);
    }
  }

  // Computes `count` rows of the depthwise convolution from `row` on; `from` begins with row
  // `from_row` of its input.
  void filter(const float* from, int64_t from_row, int64_t row, int64_t count, float* to,
              const Slot& slot) const {
    const DepthwiseProblem& problem = strips_.depthwise;
    const float* weights = slot.input(strips_.depthwise_weights);
    const float* bias = slot.input(strips_.depthwise_bias);
    for (int64_t channel = 0; channel < strips_.channels; channel += problem.channels) {
      DepthwiseProblem own = problem;
      own.channels = std::min(problem.channels, strips_.channels - channel);
      DepthwiseOperands operands = {.from = from + channel,
                                    .from_row = from_row,
                                    .weights = weights + channel,
                                    .weight_stride = strips_.channels,
                                    .bias = bias == nullptr ? nullptr : bias + channel,
                                    .to = to + channel};
      for (int64_t each = 0; each < count; ++each, operands.to += division_.row) {
        compute_row_(own, operands, row + each);
      }
    }
  }

  DepthwiseStrips strips_;
  Division division_;
  DepthwiseRow compute_row_;
  GemmLoops loops_;
};

int64_t pixels_of(const WindowAxis& rows, const WindowAxis& columns, bool is_output) {
  return is_output ? rows.output * columns.output : rows.input * columns.input;
}

}  // namespace

double DepthwiseStrips::flops() const {
  const auto& [rows, columns] = std::pair(depthwise.rows, depthwise.columns);
  const auto inputs = static_cast<double>(images * pixels_of(rows, columns, false));
  const auto outputs = static_cast<double>(images * pixels_of(rows, columns, true));
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

int64_t strips_workspace_bytes(const DepthwiseStrips& strips, int64_t threads) {
  return division_of(strips, threads).workspace_bytes();
}

std::unique_ptr<plugin::Kernel> make_strips_kernel(const DepthwiseStrips& strips, int64_t threads) {
  return std::make_unique<StripsKernel>(strips, threads);
}

}  // namespace tessera::native
