// What Conv and ConvTranspose share: inputs X [N, C, D1, ...], W and B, their attributes, and the
// matrix product that both become. window.h has the geometry.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ops/convert_element.h"
#include "ops/matrix_product.h"
#include "ops/op.h"
#include "ops/window.h"

namespace tessera::ops {

// The declaration of both but for the name, the rule, the cost and the kernel.
Op convolution_op();

// fail()s unless X has 1 to kMostSpatialAxes spatial axes and W the rank of X.
void check_ranks(const InferContext& context, const Shape& input, const Shape& weights);

// The attribute 'group'; fail()s below 1.
int64_t group_of(const InferContext& context);

// The kernel's size: kernel_shape where given, else that of the weights; nullopt where neither is
// known. fail()s where they differ.
std::optional<std::vector<int64_t>> kernel_of(const InferContext& context, const Shape& weights);

// A multiply-add for each element of `pictures`, of a known shape, and each element of the weights
// that belongs to one of W's first dimension.
int64_t convolution_flops(const Type& pictures, const Type& weights);

// The coordinates of tap number `tap` of the kernel, one for each axis of the window.
std::array<int64_t, kMostSpatialAxes> tap_at(const Window& window, int64_t tap);

// Calls visit(plane, row, column, done, length) for the rows that the outputs [begin, begin +
// count) of one channel lie in: `length` outputs from `column` on, `done` of them came before.
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

// The numbers of a convolution whose shapes are all known.
struct Convolution {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t group_inputs = 1;   // channels of one group
  int64_t group_outputs = 1;  // output channels of one group
  Window window;
};

// For each picture and group, [output channels, channels * taps] times [channels * taps, outputs].
// The bias is added and the result stored. The left side, along its depth, is read by read_weights,
// as a MatrixOperand is. The right side is read by read_tap(channel, window, tap, begin, count,
// target), which gives what tap number `tap` brings to the outputs [begin, begin + count) out of
// the elements of `channel`.
template <class T, class ReadWeights, class ReadTap>
void convolve(const KernelCall& call, const Convolution& conv, const ReadWeights& read_weights,
              const ReadTap& read_tap) {
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
    T* target = output + (which * conv.group_outputs + row) * columns + begin;
    for (int64_t index = 0; index < count; ++index) {
      target[index] = from_double<T>(sums[index] + offset);
    }
  };
  multiply<double>(call, {.count = conv.batch * conv.groups,
                          .rows = conv.group_outputs,
                          .columns = columns,
                          .depth = conv.group_inputs * taps,
                          .left = {read_weights, true},
                          .right = {read_inputs, false},
                          .store = store});
}

}  // namespace tessera::ops
