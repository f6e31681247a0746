// DeformConv: a convolution whose taps are moved by offsets that an input gives, and may be
// weighted by a mask, as in Zhu et al., "Deformable ConvNets v2", 2019. The columns of the matrix
// product are interpolated block by block while the product reads them; conv.cc has the plain
// convolution.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "ops/check_shape.h"
#include "ops/convolution/convolution.h"

namespace tessera::ops {
namespace {

enum DeformInput : size_t { kDeformX, kDeformW, kDeformOffset, kDeformB, kDeformMask };

// fail()s unless offsets and mask have a number for each tap and each element of `output`.
void check_offsets(const InferContext& context, const Shape& input, std::span<const int64_t> kernel,
                   const Shape& output) {
  const int64_t groups = context.node().attributes.get_int("offset_group");
  if (groups < 1) {
    context.fail("expected an 'offset_group' of at least 1, found " + std::to_string(groups));
  }
  if (input[1].is_known() && input[1].value() % groups != 0) {
    context.fail_input(kDeformX, "expected channels in " + std::to_string(groups) +
                                     " equal groups as 'offset_group' says, found " + text(input));
  }
  Dim taps = groups;
  for (const int64_t length : kernel) taps = multiply(taps, length);
  Shape expected = output;
  expected[0] = input[0];
  expected[1] = multiply(taps, static_cast<int64_t>(kernel.size()));
  check_shape(context, kDeformOffset, expected);
  expected[1] = taps;
  check_shape(context, kDeformMask, expected);
}

void infer_deform_conv(InferContext& context) {
  const Shape* input = context.shape(kDeformX);
  const Shape* weights = context.shape(kDeformW);
  context.set_output(0, context.element(0));
  if (input == nullptr || weights == nullptr) return;
  check_ranks(context, *input, *weights);
  check_channels(context, *input, *weights);
  check_shape(context, kDeformB, {(*weights)[0]});
  const std::optional<std::vector<int64_t>> kernel = kernel_of(context, *weights);
  if (!kernel) return;
  const WindowAttributes window = read_window(context.node(), *kernel);
  Shape output = {(*input)[0], (*weights)[0]};
  for (size_t axis = 0; axis + 2 < input->size(); ++axis) {
    output.push_back(window_output(context.node(), window, axis, (*input)[axis + 2]));
  }
  check_offsets(context, *input, *kernel, output);
  context.set_output(0, context.element(0), std::move(output));
}

struct DeformableConvolution {
  Convolution conv;
  size_t first_axis = 0;  // axes of the window before it are added, and have no offsets
  int64_t offset_groups = 1;
};

DeformableConvolution deformable_convolution(const KernelCall& call) {
  const auto input = call.inputs[kDeformX].dims;
  const auto weights = call.inputs[kDeformW].dims;
  DeformableConvolution result;
  result.conv.batch = input[0];
  result.conv.groups = call.node.attributes.get_int("group");
  result.conv.group_inputs = weights[1];
  result.conv.group_outputs = weights[0] / result.conv.groups;
  result.conv.window =
      known_window(call.node, read_window(call.node, weights.subspan(2)), input.subspan(2));
  result.first_axis = kMaxSpatialAxes + 2 - input.size();
  result.offset_groups = call.node.attributes.get_int("offset_group");
  return result;
}

using SampledPlace = std::array<double, kMaxSpatialAxes>;

// The two elements beside a position along one axis; outside of the input there are none.
struct AxisNeighbours {
  std::array<int64_t, 2> index = {};
  std::array<double, 2> weight = {};
  size_t count = 0;
};

AxisNeighbours neighbours_of(double position, int64_t length) {
  AxisNeighbours result;
  // Written so that NaN is outside.
  if (!(position > -1 && position < static_cast<double>(length))) return result;
  const double below = std::floor(position);
  const auto first = static_cast<int64_t>(below);
  const std::array weights = {1 - (position - below), position - below};
  for (size_t which = 0; which < 2; ++which) {
    const int64_t index = first + static_cast<int64_t>(which);
    if (index < 0 || index >= length) continue;
    result.index[result.count] = index;
    result.weight[result.count++] = weights[which];
  }
  return result;
}

// The linear interpolation of `channel`, outside of which everything is 0.
template <class T>
double interpolated_at(const T* channel, const Window& window, const SampledPlace& place) {
  const AxisNeighbours planes = neighbours_of(place[0], window[0].input);
  const AxisNeighbours rows = neighbours_of(place[1], window[1].input);
  const AxisNeighbours columns = neighbours_of(place[2], window[2].input);
  double sum = 0;
  for (size_t plane = 0; plane < planes.count; ++plane) {
    for (size_t row = 0; row < rows.count; ++row) {
      const T* line =
          channel + (planes.index[plane] * window[1].input + rows.index[row]) * window[2].input;
      const double weight = planes.weight[plane] * rows.weight[row];
      for (size_t column = 0; column < columns.count; ++column) {
        sum += weight * columns.weight[column] * to_double(line[columns.index[column]]);
      }
    }
  }
  return sum;
}

// The offsets and the mask of one tap, for all outputs.
template <class T>
struct TapOffsets {
  std::array<const T*, kMaxSpatialAxes> along = {};  // null: none
  const T* mask = nullptr;
};

template <class T>
TapOffsets<T> tap_offsets(const KernelCall& call, const DeformableConvolution& problem,
                          int64_t batch, int64_t channel, int64_t tap) {
  const Window& window = problem.conv.window;
  const int64_t outputs = output_count(window);
  const int64_t group_channels =
      problem.conv.groups * problem.conv.group_inputs / problem.offset_groups;
  const int64_t group = batch * problem.offset_groups + channel / group_channels;
  const int64_t line = group * tap_count(window) + tap;
  TapOffsets<T> result;
  const T* next = call.inputs[kDeformOffset].as<T>().data() +
                  line * static_cast<int64_t>(kMaxSpatialAxes - problem.first_axis) * outputs;
  for (size_t axis = problem.first_axis; axis < kMaxSpatialAxes; ++axis, next += outputs) {
    result.along[axis] = next;
  }
  if (call.has_input(kDeformMask))
    result.mask = call.inputs[kDeformMask].as<T>().data() + line * outputs;
  return result;
}

// Reads what tap `step` % taps of channel `step` / taps of a group contributes to the outputs
// [begin, begin + count).
template <class T>
void read_deformed(const KernelCall& call, const DeformableConvolution& problem, int64_t which,
                   int64_t step, int64_t begin, int64_t count, double* target) {
  const Convolution& conv = problem.conv;
  const Window& window = conv.window;
  const int64_t tap = step % tap_count(window);
  const int64_t channel = which % conv.groups * conv.group_inputs + step / tap_count(window);
  const int64_t batch = which / conv.groups;
  const auto offsets = tap_offsets<T>(call, problem, batch, channel, tap);
  const T* source = call.inputs[kDeformX].as<T>().data() +
                    (batch * conv.groups * conv.group_inputs + channel) * input_count(window);
  const auto taps = tap_at(window, tap);
  for_each_output_row(
      window, begin, count,
      [&](int64_t plane, int64_t row, int64_t column, int64_t done, int64_t length) {
        for (int64_t index = 0; index < length; ++index) {
          const std::array<int64_t, kMaxSpatialAxes> output = {plane, row, column + index};
          const int64_t position = begin + done + index;
          SampledPlace place = {};
          for (size_t axis = problem.first_axis; axis < kMaxSpatialAxes; ++axis) {
            const WindowAxis& along = window[axis];
            place[axis] = static_cast<double>(output[axis] * along.stride +
                                              taps[axis] * along.dilation - along.pad_begin) +
                          to_double(offsets.along[axis][position]);
          }
          const double sample = interpolated_at(source, window, place);
          target[done + index] =
              offsets.mask == nullptr ? sample : sample * to_double(offsets.mask[position]);
        }
      });
}

template <class T>
void convolve_deformed(const KernelCall& call) {
  const DeformableConvolution problem = deformable_convolution(call);
  const Convolution& conv = problem.conv;
  const int64_t depth = conv.group_inputs * tap_count(conv.window);
  const int64_t columns = output_count(conv.window);
  const T* weights = call.inputs[kDeformW].as<T>().data();
  const T* bias = call.has_input(kDeformB) ? call.inputs[kDeformB].as<T>().data() : nullptr;
  T* output = call.outputs[0].as<T>().data();
  const auto read_weights = [&](int64_t which, int64_t row, int64_t begin, int64_t count,
                                double* target) {
    const T* source = weights + (which % conv.groups * conv.group_outputs + row) * depth + begin;
    for (int64_t index = 0; index < count; ++index) target[index] = to_double(source[index]);
  };
  const auto read_inputs = [&](int64_t which, int64_t step, int64_t begin, int64_t count,
                               double* target) {
    read_deformed<T>(call, problem, which, step, begin, count, target);
  };
  const auto store = [&](int64_t which, int64_t row, int64_t begin, int64_t count,
                         const double* sums) {
    const int64_t channel = which % conv.groups * conv.group_outputs + row;
    const double offset = bias == nullptr ? 0.0 : to_double(bias[channel]);
    T* target = output + (which * conv.group_outputs + row) * columns + begin;
    for (int64_t index = 0; index < count; ++index) {
      target[index] = from_double<T>(sums[index] + offset);
    }
  };
  multiply_matrices<double>(call, {.count = conv.batch * conv.groups,
                                   .rows = conv.group_outputs,
                                   .columns = columns,
                                   .depth = depth,
                                   .left = {read_weights, true},
                                   .right = {read_inputs, false},
                                   .store = store});
}

void run_deform_conv(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    convolve_deformed<T>(call);
  });
}

int64_t deform_conv_flops(const Node&, std::span<const Type> inputs,
                          std::span<const Type> outputs) {
  return convolution_flops(outputs[0], inputs[1]);
}

}  // namespace

std::vector<Op> deform_conv_ops() {
  return {{.name = "DeformConv",
           .versions = {19, 22},
           .inputs = {{"X", "T"},
                      {"W", "T"},
                      {"offset", "T"},
                      {"B", "T", Arity::Optional},
                      {"mask", "T", Arity::Optional}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"dilations", AttributeKind::Ints, std::nullopt},
                          {"group", AttributeKind::Int, int64_t{1}},
                          {"kernel_shape", AttributeKind::Ints, std::nullopt},
                          {"offset_group", AttributeKind::Int, int64_t{1}},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .infer = infer_deform_conv,
           .flops = deform_conv_flops,
           .kernel = run_deform_conv}};
}

}  // namespace tessera::ops
