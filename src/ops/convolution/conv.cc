// Conv: a matrix product of the weights with the unfolded windows of the input (im2col). The
// columns are built block by block while the product reads them. window.h has the geometry;
// conv_transpose.cc the transposed convolution.
#include "ops/convolution/conv.h"

#include <algorithm>
#include <array>

#include "ops/check_shape.h"
#include "ops/convolution/convolution.h"

namespace tessera::ops {
namespace {

void infer_conv(InferContext& context) {
  const Shape* input = context.shape(0);
  const Shape* weights = context.shape(1);
  context.set_output(0, context.element(0));
  if (input == nullptr || weights == nullptr) return;
  check_ranks(context, *input, *weights);
  check_channels(context, *input, *weights);
  check_shape(context, 2, {(*weights)[0]});
  const std::optional<std::vector<int64_t>> kernel = kernel_of(context, *weights);
  if (!kernel) return;
  const WindowAttributes window = read_window(context.node(), *kernel);
  Shape output = {(*input)[0], (*weights)[0]};
  for (size_t axis = 0; axis + 2 < input->size(); ++axis) {
    output.push_back(window_output(context.node(), window, axis, (*input)[axis + 2]));
  }
  context.set_output(0, context.element(0), std::move(output));
}

Convolution convolution_of(const KernelCall& call) {
  const auto input = call.inputs[0].dims;
  const auto weights = call.inputs[1].dims;
  Convolution conv;
  conv.batch = input[0];
  conv.groups = call.node.attributes.get_int("group");
  conv.group_inputs = weights[1];
  conv.group_outputs = weights[0] / conv.groups;
  conv.window =
      known_window(call.node, read_window(call.node, weights.subspan(2)), input.subspan(2));
  return conv;
}

// Reads the input elements that one kernel tap meets along a row of outputs, from output `begin`
// on.
template <class T>
void read_row(const T* row, const WindowAxis& axis, int64_t tap, TapRange inside, int64_t begin,
              int64_t count, double* target) {
  const int64_t first = std::clamp<int64_t>(inside.begin - begin, 0, count);
  const int64_t last = std::clamp<int64_t>(inside.end - begin, first, count);
  std::fill_n(target, first, 0.0);
  std::fill(target + last, target + count, 0.0);
  if (first == last) return;
  const T* source = row + ((begin + first) * axis.stride + tap * axis.dilation - axis.pad_begin);
  if (axis.stride == 1) {
    for (int64_t index = first; index < last; ++index) {
      target[index] = to_double(source[index - first]);
    }
  } else {
    for (int64_t index = first; index < last; ++index) {
      target[index] = to_double(source[(index - first) * axis.stride]);
    }
  }
}

bool reads_inside(const WindowAxis& axis, int64_t output, int64_t tap, int64_t& position) {
  position = output * axis.stride + tap * axis.dilation - axis.pad_begin;
  return position >= 0 && position < axis.input;
}

// Reads the elements of `channel` that kernel tap `tap` meets, for the outputs from `begin` on.
template <class T>
void read_tap(const T* channel, const Window& window, int64_t tap, int64_t begin, int64_t count,
              double* target) {
  const auto taps = tap_at(window, tap);
  const TapRange inside = outputs_inside(window[2], taps[2]);
  for_each_output_row(
      window, begin, count,
      [&](int64_t plane, int64_t row, int64_t column, int64_t done, int64_t length) {
        int64_t input_row = 0;
        int64_t input_plane = 0;
        if (reads_inside(window[1], row, taps[1], input_row) &&
            reads_inside(window[0], plane, taps[0], input_plane)) {
          const T* source = channel + (input_plane * window[1].input + input_row) * window[2].input;
          read_row(source, window[2], taps[2], inside, column, length, target + done);
        } else {
          std::fill_n(target + done, length, 0.0);
        }
      });
}

}  // namespace

// The bias initialises the sum.
int64_t conv_flops(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return convolution_flops(outputs[0], inputs[1]);
}

void run_conv(const KernelCall& call, FinishSums finish) {
  if (call.outputs[0].elements == 0) return;
  const Convolution conv = convolution_of(call);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* weights = call.inputs[1].as<T>().data();
    const int64_t depth = conv.group_inputs * tap_count(conv.window);
    const auto read_weights = [&](int64_t which, int64_t row, int64_t begin, int64_t count,
                                  double* target) {
      const int64_t channel = which % conv.groups * conv.group_outputs + row;
      const T* source = weights + channel * depth + begin;
      for (int64_t index = 0; index < count; ++index) target[index] = to_double(source[index]);
    };
    convolve<T>(call, conv, read_weights, read_tap<T>, finish);
  });
}

void run_conv(const KernelCall& call) { run_conv(call, kKeepSums); }

std::optional<Shape> convolution_shape(const InferContext& context, size_t input, size_t weights) {
  return convolution_shape(context, context.input(input), weights);
}

std::optional<Shape> convolution_shape(const InferContext& context, const InferInput& input,
                                       size_t weights) {
  const std::array inputs = {input, context.input(weights)};
  return convolution_shape(context, inputs);
}

std::optional<Shape> convolution_shape(const InferContext& context,
                                       std::span<const InferInput> inputs) {
  static const Op kConv = convolution_op();
  InferContext convolution(kConv, context.node(), inputs);
  infer_conv(convolution);
  return convolution.outputs()[0].type.shape;
}

std::vector<Op> conv_ops() {
  Op conv = convolution_op();
  conv.name = "Conv";
  conv.traits = kProduct | kConvolution | kBoundsMagnitude;
  conv.infer = infer_conv;
  conv.flops = conv_flops;
  conv.kernel = [](const KernelCall& call) { run_conv(call, kKeepSums); };
  return {conv};
}

}  // namespace tessera::ops
