// ConvTranspose: the gradient of a convolution. Each output gathers the inputs whose windows
// contain it. conv.cc has the convolution itself. ConvTransposeWithDynamicPads of com.microsoft
// takes the pads as an input.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/check_shape.h"
#include "ops/convolution/convolution.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

// The attributes of a transposed window. Here pads remove outputs instead of adding inputs.
struct TransposedAttributes {
  WindowAttributes window;
  AxisLengths output_padding;
  std::span<const int64_t> output_shape;  // empty if the model does not give it
};

// `pads` are those of an input; empty: those of the attribute.
TransposedAttributes read_transposed(const Node& node, std::span<const int64_t> kernel,
                                     std::span<const int64_t> pads = {}) {
  const size_t rank = kernel.size();
  TransposedAttributes result;
  result.window = read_window(node, kernel);
  result.output_padding = read_lengths(node, "output_padding", rank, 0, 0);
  if (!pads.empty()) {
    result.window.pads_begin = {pads.first(rank), 0};
    result.window.pads_end = {pads.subspan(rank), 0};
  }
  if (node.attributes.has("output_shape")) {
    // Some exporters also list the batch and the channels, which are known from the input and the
    // weights.
    const std::vector<int64_t>& given = node.attributes.get_ints("output_shape");
    const size_t extra = given.size() == rank + 2 ? 2 : 0;
    result.output_shape =
        read_lengths(node, "output_shape", rank + extra, 1, 1).given.subspan(extra);
  }
  return result;
}

// The length along one axis before pads are removed.
Dim full_length(const TransposedAttributes& attributes, size_t axis, const Dim& input) {
  const int64_t stride = attributes.window.strides[axis];
  return add(multiply(input, stride),
             attributes.output_padding[axis] + dilated_kernel(attributes.window, axis) - stride);
}

Dim transposed_output(const Node& node, const TransposedAttributes& attributes, size_t axis,
                      const Dim& input) {
  const WindowAttributes& window = attributes.window;
  if (!attributes.output_shape.empty()) return attributes.output_shape[axis];
  const int64_t beyond =
      attributes.output_padding[axis] + dilated_kernel(window, axis) - window.strides[axis];
  // SAME crops the length to input * stride but never extends it.
  if (is_same(window.auto_pad)) {
    return add(multiply(input, window.strides[axis]), std::min<int64_t>(0, beyond));
  }
  const bool is_valid = window.auto_pad == AutoPad::Valid;
  const int64_t cut = is_valid ? 0 : window.pads_begin[axis] + window.pads_end[axis];
  // A single sum, so that a symbol stays unchanged if the total is zero.
  Dim output = add(multiply(input, window.strides[axis]), beyond - cut);
  if (output.is_known() && output.value() < 1) {
    throw Error(ErrorKind::InvalidModel, location_of(node),
                "expected padding that leaves an output along spatial axis " +
                    std::to_string(axis) + ", found a length of " + output.text() +
                    " from an input of " + input.text());
  }
  return output;
}

// The number of outputs removed at the front. Negative totals add outputs at the end that no input
// reaches.
int64_t front_cut(const TransposedAttributes& attributes, size_t axis, int64_t input,
                  int64_t output) {
  const AutoPad auto_pad = attributes.window.auto_pad;
  if (attributes.output_shape.empty() && !is_same(auto_pad)) {
    return auto_pad == AutoPad::Valid ? 0 : attributes.window.pads_begin[axis];
  }
  const int64_t total = std::max<int64_t>(0, full_length(attributes, axis, input).value() - output);
  // The text of version 1 swaps the halves of an odd total, contrary to its own definition of
  // SAME_UPPER. Version 11 corrected this, and other runtimes treat both versions alike.
  return auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
}

Window transposed_window(const Node& node, const TransposedAttributes& attributes,
                         std::span<const int64_t> input_spatial) {
  Window window;
  const size_t first = kMaxSpatialAxes - input_spatial.size();
  for (size_t axis = 0; axis < input_spatial.size(); ++axis) {
    const int64_t input = input_spatial[axis];
    const int64_t output = transposed_output(node, attributes, axis, input).value();
    window[first + axis] = {.input = input,
                            .output = output,
                            .kernel = attributes.window.kernel[axis],
                            .stride = attributes.window.strides[axis],
                            .dilation = attributes.window.dilations[axis],
                            .pad_begin = front_cut(attributes, axis, input, output)};
  }
  return window;
}

void check_transposed_channels(const InferContext& context, const Shape& input,
                               const Shape& weights) {
  const int64_t group = group_of(context);
  if (weights[0] == Dim(0)) {
    context.fail_input(1, "expected at least 1 channel, found " + text(weights));
  }
  if (input[1].is_known() && weights[0].is_known() && input[1] != weights[0]) {
    context.fail_input(1, "expected weights over " + input[1].text() + " channels as input 'X' (" +
                              text(input) + ") has, found " + text(weights));
  }
  if (weights[0].is_known() && weights[0].value() % group != 0) {
    context.fail_input(1, "expected input channels in " + std::to_string(group) +
                              " equal groups, found " + text(weights));
  }
}

// The batch and channels of the output; nullopt if a rank is unknown.
std::optional<Shape> transposed_channels(const InferContext& context, size_t bias) {
  const Shape* input = context.shape(0);
  const Shape* weights = context.shape(1);
  if (input == nullptr || weights == nullptr) return std::nullopt;
  check_ranks(context, *input, *weights);
  check_transposed_channels(context, *input, *weights);
  const Dim channels = multiply((*weights)[1], context.node().attributes.get_int("group"));
  check_shape(context, bias, {channels});
  return Shape{input->front(), channels};
}

void append_spatial(const InferContext& context, const TransposedAttributes& attributes,
                    Shape& output) {
  for (size_t axis = 0; axis + 2 < context.shape(0)->size(); ++axis) {
    output.push_back(
        transposed_output(context.node(), attributes, axis, (*context.shape(0))[axis + 2]));
  }
}

void infer_conv_transpose(InferContext& context) {
  context.set_output(0, context.element(0));
  std::optional<Shape> output = transposed_channels(context, 2);
  if (!output) return;
  const std::optional<std::vector<int64_t>> kernel = kernel_of(context, *context.shape(1));
  if (!kernel) return;
  append_spatial(context, read_transposed(context.node(), *kernel), *output);
  context.set_output(0, context.element(0), std::move(output));
}

// The inputs of ConvTransposeWithDynamicPads.
constexpr size_t kDynamicPads = 2;
constexpr size_t kDynamicBias = 3;
constexpr int64_t kMaxPad = INT32_MAX;  // as of the attribute

// Zeros if the node leaves them out; nullopt if they are unknown.
std::optional<std::vector<int64_t>> dynamic_pads(const InferContext& context, size_t axes) {
  if (!context.has_input(kDynamicPads)) return std::vector<int64_t>(2 * axes, 0);
  std::optional<std::vector<int64_t>> pads = integer_list(context, kDynamicPads);
  if (!pads) return std::nullopt;
  const auto is_pad = [](int64_t pad) { return pad >= 0 && pad <= kMaxPad; };
  if (pads->size() != 2 * axes || !std::ranges::all_of(*pads, is_pad)) {
    std::string found;
    for (const int64_t pad : *pads) found += (found.empty() ? "" : ", ") + std::to_string(pad);
    context.fail_input(kDynamicPads, "expected " + std::to_string(2 * axes) +
                                         " numbers from 0 to " + std::to_string(kMaxPad) +
                                         ", found [" + found + "]");
  }
  return pads;
}

void infer_dynamic_pads(InferContext& context) {
  context.set_output(0, context.element(0));
  std::optional<Shape> output = transposed_channels(context, kDynamicBias);
  if (!output) return;
  const size_t axes = context.shape(0)->size() - 2;
  const auto pads = dynamic_pads(context, axes);
  const std::optional<std::vector<int64_t>> kernel = kernel_of(context, *context.shape(1));
  if (pads && kernel) {
    append_spatial(context, read_transposed(context.node(), *kernel, *pads), *output);
  } else {
    for (size_t axis = 0; axis < axes; ++axis) {
      output->push_back(unknown_dim(context, 0, axis + 2));
    }
  }
  context.set_output(0, context.element(0), std::move(output));
}

// The input that kernel tap `tap` maps to `output`, or -1 if there is none.
int64_t source_of(const WindowAxis& axis, int64_t output, int64_t tap) {
  const int64_t position = output + axis.pad_begin - tap * axis.dilation;
  if (position < 0 || position % axis.stride != 0) return -1;
  const int64_t source = position / axis.stride;
  return source < axis.input ? source : -1;
}

// Reads the elements of `channel` that kernel tap `tap` maps to the outputs from `begin` on.
template <class T>
void gather_tap(const T* channel, const Window& window, int64_t tap, int64_t begin, int64_t count,
                double* target) {
  const auto taps = tap_at(window, tap);
  std::fill_n(target, count, 0.0);
  for_each_output_row(
      window, begin, count,
      [&](int64_t plane, int64_t row, int64_t column, int64_t done, int64_t length) {
        const int64_t input_plane = source_of(window[0], plane, taps[0]);
        const int64_t input_row = source_of(window[1], row, taps[1]);
        if (input_row < 0 || input_plane < 0) return;
        const T* source = channel + (input_plane * window[1].input + input_row) * window[2].input;
        for (int64_t index = 0; index < length; ++index) {
          const int64_t input_column = source_of(window[2], column + index, taps[2]);
          if (input_column >= 0) target[done + index] = to_double(source[input_column]);
        }
      });
}

template <class T>
void convolve_transposed(const KernelCall& call, const Convolution& conv) {
  const T* weights = call.inputs[1].as<T>().data();
  const int64_t taps = tap_count(conv.window);
  const auto read_weights = [&](int64_t which, int64_t row, int64_t begin, int64_t count,
                                double* target) {
    const T* source = weights + which % conv.groups * conv.group_inputs * conv.group_outputs * taps;
    for (int64_t step = begin; step < begin + count; ++step) {
      const int64_t channel = step / taps * conv.group_outputs + row;
      target[step - begin] = to_double(source[channel * taps + step % taps]);
    }
  };
  convolve<T>(call, conv, read_weights, gather_tap<T>, kKeepSums);
}

// Computes one output: the sum over exactly those inputs that reach it.
template <class T>
double gathered(const KernelCall& call, const Convolution& conv, int64_t which, int64_t row,
                int64_t index) {
  const Window& window = conv.window;
  const int64_t taps = tap_count(window);
  const int64_t first_channel = which * conv.group_inputs;
  const T* pictures = call.inputs[0].as<T>().data() + first_channel * input_count(window);
  const T* weights = call.inputs[1].as<T>().data() +
                     which % conv.groups * conv.group_inputs * conv.group_outputs * taps;
  const int64_t column = index % window[2].output;
  const int64_t line = index / window[2].output % window[1].output;
  const int64_t plane = index / window[2].output / window[1].output;
  double sum = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const auto tap_position = tap_at(window, tap);
    const int64_t from_plane = source_of(window[0], plane, tap_position[0]);
    const int64_t from_line = source_of(window[1], line, tap_position[1]);
    const int64_t from_column = source_of(window[2], column, tap_position[2]);
    if (from_plane < 0 || from_line < 0 || from_column < 0) continue;
    const int64_t source =
        (from_plane * window[1].input + from_line) * window[2].input + from_column;
    for (int64_t channel = 0; channel < conv.group_inputs; ++channel) {
      sum += to_double(pictures[channel * input_count(window) + source]) *
             to_double(weights[(channel * conv.group_outputs + row) * taps + tap]);
    }
  }
  return sum;
}

// If weights are not finite, the zeros that the matrix product uses for missing inputs would give
// NaN in outputs that do not depend on those weights.
template <class T>
void convolve_exactly(const KernelCall& call, const Convolution& conv) {
  const int64_t columns = output_count(conv.window);
  const T* bias = call.has_input(2) ? call.inputs[2].as<T>().data() : nullptr;
  const std::span<T> target = call.outputs[0].as<T>();
  const int64_t rows = conv.batch * conv.groups * conv.group_outputs;
  call.pool.parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin * columns; index < end * columns; ++index) {
      const int64_t which = index / columns / conv.group_outputs;
      const int64_t row = index / columns % conv.group_outputs;
      const int64_t channel = which % conv.groups * conv.group_outputs + row;
      const double offset = bias == nullptr ? 0.0 : to_double(bias[channel]);
      target[static_cast<size_t>(index)] =
          from_double<T>(gathered<T>(call, conv, which, row, index % columns) + offset);
    }
  });
}

// `pads` are those of an input, as of read_transposed().
void run_transposed(const KernelCall& call, std::span<const int64_t> pads) {
  if (call.outputs[0].elements == 0) return;
  const auto weights = call.inputs[1].dims;
  Convolution conv = {.batch = call.inputs[0].dims[0],
                      .groups = call.node.attributes.get_int("group"),
                      .group_outputs = weights[1]};
  conv.group_inputs = weights[0] / conv.groups;
  conv.window = transposed_window(call.node, read_transposed(call.node, weights.subspan(2), pads),
                                  call.inputs[0].dims.subspan(2));
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool is_finite = std::ranges::all_of(
        call.inputs[1].as<T>(), [](T weight) { return std::isfinite(to_double(weight)); });
    is_finite ? convolve_transposed<T>(call, conv) : convolve_exactly<T>(call, conv);
  });
}

void run_conv_transpose(const KernelCall& call) { run_transposed(call, {}); }

void run_dynamic_pads(const KernelCall& call) {
  const std::pmr::vector<int64_t> pads = integers_of(call, kDynamicPads);
  std::array<TensorView, 3> inputs = {call.inputs[0], call.inputs[1]};
  if (call.has_input(kDynamicBias)) inputs[2] = call.inputs[kDynamicBias];
  run_transposed({call.node, inputs, call.outputs, call.pool, call.scratch}, pads);
}

// A multiply-add for each input, tap and output channel of its group.
int64_t conv_transpose_flops(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  return convolution_flops(inputs[0], inputs[1]);
}

}  // namespace

std::vector<Op> conv_transpose_ops() {
  Op transposed = convolution_op();
  transposed.name = "ConvTranspose";
  transposed.attributes.push_back({"output_padding", AttributeKind::Ints, std::nullopt});
  transposed.attributes.push_back({"output_shape", AttributeKind::Ints, std::nullopt});
  transposed.traits = kProduct | kConvolution | kBoundsMagnitude;
  transposed.infer = infer_conv_transpose;
  transposed.flops = conv_transpose_flops;
  transposed.kernel = run_conv_transpose;

  Op dynamic = convolution_op();
  dynamic.name = "ConvTransposeWithDynamicPads";
  dynamic.domain = kMicrosoftDomain;
  dynamic.versions = {1};
  dynamic.inputs.insert(dynamic.inputs.begin() + 2, {"Pads", "tensor(int64)", Arity::Optional});
  dynamic.type_variables.push_back({"tensor(int64)", kInt64Type});
  std::erase_if(dynamic.attributes,
                [](const AttributeSchema& attribute) { return attribute.name == "pads"; });
  dynamic.attributes.push_back({"output_padding", AttributeKind::Ints, std::nullopt});
  dynamic.infer = infer_dynamic_pads;
  dynamic.flops = conv_transpose_flops;
  dynamic.kernel = run_dynamic_pads;
  return {transposed, dynamic};
}

}  // namespace tessera::ops
