// Conv in row-major order: a product of the weights by panels of output pixels, which are gathered
// from the input one panel at a time, so that they stay in the cache.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families.h"
#include "product_kernels.h"
#include "window.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Floating-point operations that one thread does at least.
constexpr double kGrainFlops = 256 * 1024;

// A panel of a deep convolution that would not stay in the cache is gathered in parts.
constexpr int64_t kMostDepth = 4096;

struct Problem {
  Window window;
  int64_t images = 1;
  int64_t groups = 1;
  int64_t from = 1;  // channels of the input, in each group
  int64_t to = 1;    // of the output, in each group
  int64_t taps = 1;
  int64_t input_pixels = 1;
  int64_t output_pixels = 1;
  bool has_bias = false;
  bool has_relu = false;

  int64_t depth() const { return from * taps; }
  // Whether each output pixel is one input pixel at the same place.
  bool is_pointwise() const {
    return std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output &&
             axis.pad_begin == 0;
    });
  }
  double flops() const {
    return 2 * static_cast<double>(images * groups * to) * static_cast<double>(output_pixels) *
           static_cast<double>(depth());
  }
};

class ConvolutionKernel : public plugin::Kernel {
 public:
  ConvolutionKernel(const Problem& problem, int threads)
      : problem_(problem), loops_(find_product_loops()) {
    panels_ = (problem.output_pixels + loops_.panel - 1) / loops_.panel;
    parts_ = problem.images * problem.groups * panels_;
    const auto worth = static_cast<int64_t>(problem.flops() / kGrainFlops) + 1;
    slots_ = std::min({static_cast<int64_t>(std::max(threads, 1)), parts_, worth});
  }

  int64_t workspace_bytes() const override {
    if (problem_.is_pointwise()) return 0;
    return slots_ * slot_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<const float>();
    const float* weights = inputs[1].as<const float>();
    const float* bias = problem_.has_bias ? inputs[2].as<const float>() : nullptr;
    float* to = outputs[0].as<float>();
    float* workspace = static_cast<float*>(context.workspace());
    // Each slot has a buffer of its own for its share of the parts.
    context.parallel_for(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* buffer = workspace == nullptr ? nullptr : workspace + slot * slot_floats();
        for (int64_t part = parts_ * slot / slots_; part < parts_ * (slot + 1) / slots_; ++part) {
          run_part(part, from, weights, bias, to, buffer);
        }
      }
    });
  }

 private:
  int64_t slot_floats() const { return std::min(problem_.depth(), kMostDepth) * loops_.panel; }

  void run_part(int64_t part, const float* from, const float* weights, const float* bias, float* to,
                float* buffer) const {
    const int64_t pixel = part % panels_ * loops_.panel;
    const int64_t group = part / panels_ % problem_.groups;
    const int64_t image = part / panels_ / problem_.groups;
    const int64_t count = std::min(loops_.panel, problem_.output_pixels - pixel);
    const float* picture =
        from + (image * problem_.groups + group) * problem_.from * problem_.input_pixels;
    const int64_t depth = problem_.depth();
    ProductPart product = {
        .left_row = depth, .rows = problem_.to, .columns = count, .to_row = problem_.output_pixels};
    const int64_t channel = (image * problem_.groups + group) * problem_.to;
    product.to = to + channel * problem_.output_pixels + pixel;
    for (int64_t done = 0; done < depth; done += kMostDepth) {
      product.depth = std::min(kMostDepth, depth - done);
      product.left = weights + group * problem_.to * depth + done;
      product.end = {.has_relu = problem_.has_relu && done + product.depth == depth};
      if (done > 0) {
        product.end.addend = product.to;
        product.end.addend_row = product.to_row;
        product.end.addend_column = 1;
      } else if (bias != nullptr) {
        product.end.addend = bias + group * problem_.to;
        product.end.addend_row = 1;
      }
      if (problem_.is_pointwise()) {
        product.right = picture + done * problem_.input_pixels + pixel;
        product.right_depth = problem_.input_pixels;
        loops_.columns(product);
        continue;
      }
      gather(picture, pixel, count, done, product.depth, buffer);
      product.right = buffer;
      product.right_depth = loops_.panel;
      loops_.padded(product);
    }
  }

  // The inputs of `count` output pixels: one line for each channel and tap, from the `first` on.
  void gather(const float* picture, int64_t pixel, int64_t count, int64_t first, int64_t lines,
              float* buffer) const {
    const auto& [planes, rows, columns] = problem_.window;
    for (int64_t line = first; line < first + lines; ++line, buffer += loops_.panel) {
      const float* channel = picture + line / problem_.taps * problem_.input_pixels;
      const int64_t tap = line % problem_.taps;
      const int64_t column_tap = tap % columns.kernel;
      const int64_t row_tap = tap / columns.kernel % rows.kernel;
      const int64_t plane_tap = tap / columns.kernel / rows.kernel;
      // Runs of pixels in one row of outputs.
      for (int64_t done = 0; done < count;) {
        const int64_t place = pixel + done;
        const int64_t column = place % columns.output;
        const int64_t row = place / columns.output % rows.output;
        const int64_t plane = place / columns.output / rows.output;
        const int64_t run = std::min(columns.output - column, count - done);
        const int64_t from_row = row * rows.stride + row_tap * rows.dilation - rows.pad_begin;
        const int64_t from_plane =
            plane * planes.stride + plane_tap * planes.dilation - planes.pad_begin;
        const bool is_inside =
            from_row >= 0 && from_row < rows.input && from_plane >= 0 && from_plane < planes.input;
        const int64_t start =
            column * columns.stride + column_tap * columns.dilation - columns.pad_begin;
        if (is_inside) {
          gather_run(channel + (from_plane * rows.input + from_row) * columns.input, start, run,
                     buffer + done);
        } else {
          std::fill(buffer + done, buffer + done + run, 0.0F);
        }
        done += run;
      }
      std::fill(buffer + count, buffer + loops_.panel, 0.0F);
    }
  }

  // Every stride-th number of a row, from `start` on; zeros where there is no row.
  void gather_run(const float* row, int64_t start, int64_t count, float* to) const {
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

  Problem problem_;
  ProductLoops loops_;
  int64_t panels_ = 1;
  int64_t parts_ = 1;
  int64_t slots_ = 1;
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
  problem.images = input[0];
  problem.groups = node.attributes().get_int("group", 1);
  problem.from = weights[1];
  problem.to = weights[0] / problem.groups;
  for (const WindowAxis& axis : problem.window) {
    problem.taps *= axis.kernel;
    problem.input_pixels *= axis.input;
    problem.output_pixels *= axis.output;
  }
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
    // One value twice has one port only, which the kernel does not know of.
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
  candidate.workspace_bytes = ConvolutionKernel(whole, context.options().threads).workspace_bytes();
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(problem.flops(), bytes);
  candidate.build = [whole](const plugin::BuildOptions& options) {
    return std::make_unique<ConvolutionKernel>(whole, options.threads);
  };
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
