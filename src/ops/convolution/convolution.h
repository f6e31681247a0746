// Shared by Conv, ConvTranspose and DeformConv: inputs X [N, C, D1, ...], W and B, the attributes,
// and the matrix product that implements both. window.h has the geometry.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads/function_ref.h"
#include "ops/convert_element.h"
#include "ops/convert_elements.h"
#include "ops/convolution/conv.h"
#include "ops/convolution/window.h"
#include "ops/matmul/matrix_product.h"
#include "ops/op.h"

namespace tessera::ops {

// The common declaration, without name, rule, cost and kernel.
Op convolution_op();

// fail()s unless X has 1 to kMaxSpatialAxes spatial axes and W has the rank of X.
void check_ranks(const InferContext& context, const Shape& input, const Shape& weights);

// The attribute 'group'; fail()s if it is less than 1.
int64_t group_of(const InferContext& context);

// fail()s unless the channels of W, [output channels, channels per group, ...], agree with those of
// X and with 'group'.
void check_channels(const InferContext& context, const Shape& input, const Shape& weights);

// The kernel's size: kernel_shape if given, else that of the weights; nullopt if neither is known.
// fail()s if they differ.
std::optional<std::vector<int64_t>> kernel_of(const InferContext& context, const Shape& weights);

// A multiply-add for each element of `pictures` (a feature map of known shape) and each element of
// one output-channel slice of the weights, W[0].
int64_t convolution_flops(const Type& pictures, const Type& weights);

// The coordinates of kernel tap `tap`, one per axis of the window.
std::array<int64_t, kMaxSpatialAxes> tap_at(const Window& window, int64_t tap);

// Calls visit(plane, row, column, done, length) for each row that contains outputs of [begin, begin
// + count) of one channel: `length` outputs from `column` on, preceded by `done` outputs of the
// range.
template <class Visit>
void for_each_output_row(const Window& window, int64_t begin, int64_t count, const Visit& visit) {
  for (int64_t done = 0; done < count;) {
    const int64_t column = (begin + done) % window[2].output;
    const int64_t row = (begin + done) / window[2].output % window[1].output;
    const int64_t plane = (begin + done) / window[2].output / window[1].output;
    const int64_t length = std::min(count - done, window[2].output - column);
    visit(plane, row, column, done, length);
    done += length;
  }
}

// The sizes of a convolution whose shapes are all known.
struct Convolution {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t group_inputs = 1;   // input channels per group
  int64_t group_outputs = 1;  // output channels per group
  Window window;
};

// The last step of ops that are not fused.
inline constexpr auto kKeepSums = [](int64_t, std::span<double>) {};

// For each batch item and group, computes [output channels, channels * taps] times [channels *
// taps, outputs], adds the bias, calls `finish` and stores the result. read_weights reads the left
// side along its depth, as in MatrixOperand. read_tap(channel, window, tap, begin, count, target)
// reads the right side: the elements of `channel` that kernel tap `tap` contributes to the outputs
// [begin, begin + count).
template <class T, class ReadWeights, class ReadTap>
void convolve(const KernelCall& call, const Convolution& conv, const ReadWeights& read_weights,
              const ReadTap& read_tap, FinishSums finish) {
  const T* input = call.inputs[0].as<T>().data();
  const T* bias = call.has_input(2) ? call.inputs[2].as<T>().data() : nullptr;
  T* output = call.outputs[0].as<T>().data();
  const int64_t taps = tap_count(conv.window);
  const int64_t columns = output_count(conv.window);
  const int64_t channel_elements = input_count(conv.window);

  const auto read_inputs = [&](int64_t which, int64_t step, int64_t begin, int64_t count,
                               double* target) {
    const int64_t channel = which * conv.group_inputs + step / taps;
    read_tap(input + channel * channel_elements, conv.window, step % taps, begin, count, target);
  };
  const auto store = [&](int64_t which, int64_t row, int64_t begin, int64_t count,
                         const double* sums) {
    const int64_t channel = which % conv.groups * conv.group_outputs + row;
    const double offset = bias == nullptr ? 0.0 : to_double(bias[channel]);
    const int64_t position = (which * conv.group_outputs + row) * columns + begin;
    std::array<double, kConvertBlock> block;
    for (int64_t done = 0; done < count; done += kConvertBlock) {
      const auto length = static_cast<size_t>(std::min(kConvertBlock, count - done));
      std::transform(sums + done, sums + done + length, block.begin(),
                     [&](double sum) { return sum + offset; });
      finish(position + done, std::span(block).first(length));
      std::transform(block.begin(), block.begin() + length, output + position + done,
                     from_double<T>);
    }
  };
  multiply_matrices<double>(call, {.count = conv.batch * conv.groups,
                                   .rows = conv.group_outputs,
                                   .columns = columns,
                                   .depth = conv.group_inputs * taps,
                                   .left = {read_weights, true},
                                   .right = {read_inputs, false},
                                   .store = store});
}

}  // namespace tessera::ops
