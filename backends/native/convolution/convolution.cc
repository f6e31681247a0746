// Conv in row-major order, as a matrix product of the weights by panels of output pixels (im2col).
// The inputs of one panel are gathered at a time, so that they stay in the cache.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "base/window.h"
#include "matmul/gemm_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;
using plugin::WindowAxis;

namespace {

// A panel of a deeper convolution would not stay in the cache, so it is gathered in parts.
constexpr int64_t kMaxDepth = 4096;

struct Problem {
  Window window;
  PaddingRule padding = PaddingRule::Fixed;
  int64_t images = 1;
  int64_t groups = 1;
  int64_t in_channels = 1;   // of each group
  int64_t out_channels = 1;  // of each group
  int64_t taps = 1;
  int64_t input_pixels = 1;
  int64_t output_pixels = 1;
  bool has_bias = false;
  bool has_relu = false;

  int64_t depth() const { return in_channels * taps; }
  // Whether each output pixel depends only on the input pixel at the same position.
  bool is_pointwise() const {
    return std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output &&
             axis.pad_begin == 0;
    });
  }
  bool is_for(std::span<const int64_t> input, std::span<const int64_t> output) const {
    return images == input[0] && has_sizes(window, input, output);
  }
  // The same convolution between tensors of these sizes.
  Problem resized_for(std::span<const int64_t> input, std::span<const int64_t> output) const {
    Problem other = *this;
    other.images = input[0];
    other.window = resized(window, padding, input, output);
    other.count_pixels();
    return other;
  }
  void count_pixels() {
    input_pixels = output_pixels = 1;
    for (const WindowAxis& axis : window) {
      input_pixels *= axis.input;
      output_pixels *= axis.output;
    }
  }
  double flops() const {
    return 2 * static_cast<double>(images * groups * out_channels) *
           static_cast<double>(output_pixels) * static_cast<double>(depth());
  }
};

// How the work is divided: a part is a panel of outputs of a group.
struct ConvolutionDivision {
  int64_t panels = 1;
  int64_t parts = 1;
  int64_t slots = 1;        // concurrent parts, each with its own buffer
  int64_t slot_floats = 0;  // of a buffer

  ConvolutionDivision(const Problem& problem, int64_t panel, int64_t threads)
      : panels(divide_up(problem.output_pixels, panel)),
        parts(problem.images * problem.groups * panels),
        slot_floats(problem.is_pointwise() ? 0 : std::min(problem.depth(), kMaxDepth) * panel) {
    const auto worth = static_cast<int64_t>(problem.flops() / kGrainFlops) + 1;
    slots = std::min({std::max<int64_t>(threads, 1), parts, worth});
  }

  int64_t workspace_bytes() const {
    return slots * slot_floats * static_cast<int64_t>(sizeof(float));
  }
};

int64_t convolution_workspace_bytes(const Problem& problem, int64_t threads) {
  return ConvolutionDivision(problem, find_gemm_loops().panel, threads).workspace_bytes();
}

// A run between tensors of known sizes.
class ConvolutionRun {
 public:
  ConvolutionRun(const Problem& problem, const ConvolutionDivision& division,
                 const GemmLoops& loops)
      : problem_(problem), division_(division), loops_(loops) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) const {
    const float* from = inputs[0].as<const float>();
    const float* weights = inputs[1].as<const float>();
    const float* bias = problem_.has_bias ? inputs[2].as<const float>() : nullptr;
    float* to = outputs[0].as<float>();
    float* workspace = static_cast<float*>(context.workspace());
    SharedParts parts(division_.parts, division_.slots);
    context.parallel_for(division_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        // Each slot has its own buffer.
        float* buffer = workspace == nullptr ? nullptr : workspace + slot * division_.slot_floats;
        parts.for_each(slot,
                       [&](int64_t part) { run_part(part, from, weights, bias, to, buffer); });
      }
    });
  }

 private:
  void run_part(int64_t part, const float* from, const float* weights, const float* bias, float* to,
                float* buffer) const {
    const int64_t pixel = part % division_.panels * loops_.panel;
    const int64_t group = part / division_.panels % problem_.groups;
    const int64_t image = part / division_.panels / problem_.groups;
    const int64_t count = std::min(loops_.panel, problem_.output_pixels - pixel);
    const float* image_data =
        from + (image * problem_.groups + group) * problem_.in_channels * problem_.input_pixels;
    const int64_t depth = problem_.depth();
    GemmBlock block = {.left_row_stride = depth,
                       .rows = problem_.out_channels,
                       .columns = count,
                       .to_row_stride = problem_.output_pixels};
    const int64_t channel = (image * problem_.groups + group) * problem_.out_channels;
    block.to = to + channel * problem_.output_pixels + pixel;
    for (int64_t done = 0; done < depth; done += kMaxDepth) {
      block.depth = std::min(kMaxDepth, depth - done);
      block.left = weights + group * problem_.out_channels * depth + done;
      const bool is_last = done + block.depth == depth;
      block.epilogue = {.activation = {problem_.has_relu && is_last ? ActivationKind::Relu
                                                                    : ActivationKind::None}};
      if (done > 0) {
        block.epilogue.addend = block.to;
        block.epilogue.addend_row_stride = block.to_row_stride;
        block.epilogue.addend_column_stride = 1;
      } else if (bias != nullptr) {
        block.epilogue.addend = bias + group * problem_.out_channels;
        block.epilogue.addend_row_stride = 1;
      }
      if (problem_.is_pointwise()) {
        block.right = image_data + done * problem_.input_pixels + pixel;
        block.right_depth_stride = problem_.input_pixels;
        loops_.columns(block);
        continue;
      }
      gather_inputs(image_data, pixel, count, done, block.depth, buffer);
      block.right = buffer;
      block.right_depth_stride = loops_.panel;
      loops_.padded(block);
    }
  }

  // Gathers the inputs of `count` output pixels: one line for each channel and tap, from line
  // `first` on.
  void gather_inputs(const float* image_data, int64_t pixel, int64_t count, int64_t first,
                     int64_t lines, float* buffer) const {
    const auto& [planes, rows, columns] = problem_.window;
    for (int64_t line = first; line < first + lines; ++line, buffer += loops_.panel) {
      const float* channel = image_data + line / problem_.taps * problem_.input_pixels;
      const int64_t tap = line % problem_.taps;
      const int64_t column_tap = tap % columns.kernel;
      const int64_t row_tap = tap / columns.kernel % rows.kernel;
      const int64_t plane_tap = tap / columns.kernel / rows.kernel;
      // Runs of pixels within one row of outputs.
      for (int64_t done = 0; done < count;) {
        const int64_t position = pixel + done;
        const int64_t column = position % columns.output;
        const int64_t row = position / columns.output % rows.output;
        const int64_t plane = position / columns.output / rows.output;
        const int64_t run = std::min(columns.output - column, count - done);
        const int64_t from_row = row * rows.stride + row_tap * rows.dilation - rows.pad_begin;
        const int64_t from_plane =
            plane * planes.stride + plane_tap * planes.dilation - planes.pad_begin;
        const bool is_inside =
            from_row >= 0 && from_row < rows.input && from_plane >= 0 && from_plane < planes.input;
        const int64_t start =
            column * columns.stride + column_tap * columns.dilation - columns.pad_begin;
        if (is_inside) {
          gather_row(channel + (from_plane * rows.input + from_row) * columns.input, start, run,
                     buffer + done);
        } else {
          std::fill(buffer + done, buffer + done + run, 0.0F);
        }
        done += run;
      }
      std::fill(buffer + count, buffer + loops_.panel, 0.0F);
    }
  }

  // Gathers every stride-th element of a row, from `start` on; zeros outside of the row.
  void gather_row(const float* row, int64_t start, int64_t count, float* to) const {
    const WindowAxis& axis = problem_.window[2];
    const int64_t stride = axis.stride;
    const int64_t before = start >= 0 ? 0 : std::min(count, (-start + stride - 1) / stride);
    const int64_t inside = start >= axis.input ? 0 : (axis.input - 1 - start) / stride + 1;
    const int64_t end = std::clamp(inside, before, count);
    std::fill(to, to + before, 0.0F);
    if (stride == 1) {
      std::copy(row + start + before, row + start + end, to + before);
    } else {
      for (int64_t index = before; index < end; ++index) to[index] = row[start + index * stride];
    }
    std::fill(to + end, to + count, 0.0F);
  }

  const Problem& problem_;
  const ConvolutionDivision& division_;
  const GemmLoops& loops_;
};

class ConvolutionKernel : public plugin::Kernel {
 public:
  ConvolutionKernel(const Problem& problem, int64_t threads)
      : problem_(problem),
        threads_(threads),
        loops_(find_gemm_loops()),
        division_(problem, loops_.panel, threads) {}

  int64_t workspace_bytes() const override { return division_.workspace_bytes(); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const std::span<const int64_t> input = inputs[0].sizes();
    const std::span<const int64_t> output = outputs[0].sizes();
    if (problem_.is_for(input, output)) {
      return ConvolutionRun(problem_, division_, loops_).run(context, inputs, outputs);
    }
    const Problem other = problem_.resized_for(input, output);
    const ConvolutionDivision division(other, loops_.panel, threads_);
    ConvolutionRun(other, division, loops_).run(context, inputs, outputs);
  }

 private:
  // For the sizes of the proposal.
  Problem problem_;
  int64_t threads_;
  GemmLoops loops_;
  ConvolutionDivision division_;
};

Problem problem_of(const Node& node) {
  for (const Value& value : {node.input(0), node.input(1), node.output(0)}) {
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
    }
  }
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> weights = node.input(1).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  if (node.output(0).type().elements() == 0 || node.input(0).type().elements() == 0) {
    throw Failure(TESSERA_UNSUPPORTED, "the convolution has no elements");
  }
  Problem problem;
  problem.window =
      window_of(node.attributes(), {weights.begin() + 2, weights.end()}, input, output);
  problem.padding = padding_rule_of(node.attributes());
  problem.images = input[0];
  problem.groups = node.attributes().get_int("group", 1);
  problem.in_channels = weights[1];
  problem.out_channels = weights[0] / problem.groups;
  for (const WindowAxis& axis : problem.window) problem.taps *= axis.kernel;
  problem.count_pixels();
  problem.has_bias = node.input(2).is_present();
  return problem;
}

void add(ProposeContext& context, const Node& node, const Problem& problem, const Node* relu) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = problem.is_pointwise() ? "pointwise" : "panels";
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}}) {
    const Value value = node.input(index);
    if (!value.is_present()) continue;
    // A value that is read twice has only one port, which the kernel does not support.
    for (const plugin::InputPort& port : candidate.inputs) {
      if (port.value == value.id()) {
        throw Failure(TESSERA_UNSUPPORTED, "reads three different values only");
      }
    }
    candidate.inputs.push_back({.value = value.id()});
  }
  candidate.outputs.push_back({.value = (relu == nullptr ? node : *relu).output(0).id()});
  if (relu != nullptr) {
    candidate.nodes.push_back(relu->id());
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
  }
  Problem whole = problem;
  whole.has_relu = relu != nullptr;
  // The batch and the spatial axes are arguments.
  candidate.built_for.emplace();
  candidate.built_for->push_back({0, 1});
  for (size_t axis = 0; axis < node.input(1).type().dims.size(); ++axis) {
    candidate.built_for->push_back({1, static_cast<int32_t>(axis)});
  }
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = convolution_workspace_bytes(whole, threads);
  candidate.workspace_for = [whole, threads](std::span<const Buffer> inputs,
                                             std::span<const Buffer> outputs) {
    const Problem other = whole.resized_for(inputs[0].sizes(), outputs[0].sizes());
    return convolution_workspace_bytes(other, threads);
  };
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(problem.flops(), bytes);
  candidate.build = [whole](const plugin::BuildOptions& options) {
    return std::make_unique<ConvolutionKernel>(whole, options.threads);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_convolutions(ProposeContext& context) {
  for (const auto& match : context.graph().match("c = Conv; Relu(c)")) {
    const Node node = context.graph().node(match[0]);
    const Node relu = context.graph().node(match[1]);
    try {
      add(context, node, problem_of(node), &relu);
    } catch (const Failure& failure) {
      context.refuse(match[0], failure.what());
    }
  }
  context.for_each({"Conv"},
                   [&](const Node& node) { add(context, node, problem_of(node), nullptr); });
}

}  // namespace tessera::native
