// Conv: a matrix product of the weights with the windows of the input, which are laid out as
// columns block by block while the product reads them. window.h has the geometry; conv_transpose.cc
// the transposed form.
#include <algorithm>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/matrix_product.h"
#include "ops/op.h"
#include "ops/window.h"

namespace tessera::ops {
namespace {

// The kernel's size: kernel_shape where given, else that of the weights; nullopt where neither is
// known. fail()s where they differ.
std::optional<std::vector<int64_t>> kernel_of(const InferContext& context, const Shape& weights) {
  const std::vector<int64_t>* declared = context.node().attributes.find_ints("kernel_shape");
  const Shape spatial(weights.begin() + 2, weights.end());
  if (declared == nullptr) {
    return is_known(spatial) ? std::optional(dims_from(spatial)) : std::nullopt;
  }
  if (!can_be_equal(spatial, shape_from(*declared))) {
    context.fail_input(1, "expected weights for a kernel of " + text(shape_from(*declared)) +
                              " as attribute 'kernel_shape' says, found " + text(weights));
  }
  return *declared;
}

void check_channels(const InferContext& context, const Shape& input, const Shape& weights) {
  const int64_t group = context.node().attributes.get_int("group");
  if (group < 1) context.fail("expected a 'group' of at least 1, found " + std::to_string(group));
  if (weights[1] == Dim(0)) {
    context.fail_input(1, "expected at least 1 channel, found " + text(weights));
  }
  if (weights[0].is_known() && weights[0].value() % group != 0) {
    context.fail_input(1, "expected output channels in " + std::to_string(group) +
                              " equal groups, found " + text(weights));
  }
  if (!input[1].is_known() || !weights[1].is_known()) return;
  if (input[1] != multiply(weights[1], group)) {
    context.fail_input(1, "expected weights over " + input[1].text() + " / " +
                              std::to_string(group) + " channels as input 'X' (" + text(input) +
                              ") and 'group' say, found " + text(weights));
  }
}

void infer_conv(InferContext& context) {
  const Shape* input = context.shape(0);
  const Shape* weights = context.shape(1);
  context.set_output(0, context.element(0));
  if (input == nullptr || weights == nullptr) return;
  check_spatial_rank(context.node(), input->size());
  if (weights->size() != input->size()) {
    context.fail_input(1, "expected rank " + std::to_string(input->size()) + " as input 'X' (" +
                              text(*input) + ") has, found " + text(*weights));
  }
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

// The numbers of a convolution whose shapes are all known.
struct Convolution {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t group_inputs = 1;   // channels of one group
  int64_t group_outputs = 1;  // output channels of one group
  Window window;
};

Convolution convolution_of(const KernelCall& call) {
  const auto input = call.inputs[0].dims;
  const auto weights = call.inputs[1].dims;
  Convolution conv;
  conv.batch = input[0];
  conv.groups = call.node.attributes.get_int("group");
  conv.group_inputs = weights[1];
  conv.group_outputs = weights[0] / conv.groups;
  const std::vector<int64_t> kernel(weights.begin() + 2, weights.end());
  conv.window = known_window(call.node, read_window(call.node, kernel), input.subspan(2));
  return conv;
}

// Elements that one tap of the kernel meets along a row of outputs, from output `begin` on.
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

// Elements of `channel` that tap number `tap` of the kernel meets for the outputs from `begin` on.
template <class T>
void read_tap(const T* channel, const Window& window, int64_t tap, int64_t begin, int64_t count,
              double* target) {
  const int64_t column_tap = tap % window[2].kernel;
  const int64_t row_tap = tap / window[2].kernel % window[1].kernel;
  const int64_t plane_tap = tap / window[2].kernel / window[1].kernel;
  const TapRange inside = outputs_inside(window[2], column_tap);
  for (int64_t done = 0; done < count;) {
    const int64_t column = (begin + done) % window[2].output;
    const int64_t row = (begin + done) / window[2].output % window[1].output;
    const int64_t plane = (begin + done) / window[2].output / window[1].output;
    const int64_t length = std::min(count - done, window[2].output - column);
    int64_t input_row = 0;
    int64_t input_plane = 0;
    if (reads_inside(window[1], row, row_tap, input_row) &&
        reads_inside(window[0], plane, plane_tap, input_plane)) {
      const T* source = channel + (input_plane * window[1].input + input_row) * window[2].input;
      read_row(source, window[2], column_tap, inside, column, length, target + done);
    } else {
      std::fill_n(target + done, length, 0.0);
    }
    done += length;
  }
}

template <class T>
MatrixProduct<double> conv_product(const KernelCall& call, const Convolution& conv) {
  const T* input = call.inputs[0].as<T>().data();
  const T* weights = call.inputs[1].as<T>().data();
  const T* bias = call.has_input(2) ? call.inputs[2].as<T>().data() : nullptr;
  T* output = call.outputs[0].as<T>().data();
  const int64_t taps = tap_count(conv.window);
  const int64_t columns = output_count(conv.window);
  const int64_t depth = conv.group_inputs * taps;
  const int64_t channel_elements = input_count(conv.window);
  const Window& window = conv.window;

  MatrixProduct<double> product = {.count = conv.batch * conv.groups,
                                   .rows = conv.group_outputs,
                                   .columns = columns,
                                   .depth = depth};
  product.left.runs_along_depth = true;
  product.left.read = [=](int64_t which, int64_t row, int64_t begin, int64_t count,
                          double* target) {
    const int64_t channel = which % conv.groups * conv.group_outputs + row;
    const T* source = weights + channel * depth + begin;
    for (int64_t index = 0; index < count; ++index) target[index] = to_double(source[index]);
  };
  product.right.read = [=](int64_t which, int64_t step, int64_t begin, int64_t count,
                           double* target) {
    const int64_t channel = which * conv.group_inputs + step / taps;
    read_tap(input + channel * channel_elements, window, step % taps, begin, count, target);
  };
  product.store = [=](int64_t which, int64_t row, int64_t begin, int64_t count,
                      const double* sums) {
    const int64_t channel = which % conv.groups * conv.group_outputs + row;
    const double offset = bias == nullptr ? 0.0 : to_double(bias[channel]);
    T* target = output + (which * conv.group_outputs + row) * columns + begin;
    for (int64_t index = 0; index < count; ++index) {
      target[index] = from_double<T>(sums[index] + offset);
    }
  };
  return product;
}

void run_conv(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Convolution conv = convolution_of(call);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    multiply(call.pool, conv_product<T>(call, conv));
  });
}

// A multiply-add for each tap and channel of each output; the bias is where a sum starts.
int64_t conv_flops(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  Dim work = 2;
  for (const Dim& dim : *outputs[0].shape) work = multiply(work, dim);
  const Shape& weights = *inputs[1].shape;
  for (size_t axis = 1; axis < weights.size(); ++axis) work = multiply(work, weights[axis]);
  return work.value();
}

}  // namespace

std::vector<Op> conv_ops() {
  return {{.name = "Conv",
           .versions = {1, 11, 22},
           .inputs = {{"X", "T"}, {"W", "T"}, {"B", "T", Arity::Optional}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                          {"dilations", AttributeKind::Ints, std::nullopt},
                          {"group", AttributeKind::Int, int64_t{1}},
                          {"kernel_shape", AttributeKind::Ints, std::nullopt},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .infer = infer_conv,
           .flops = conv_flops,
           .kernel = run_conv}};
}

}  // namespace tessera::ops
