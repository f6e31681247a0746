// Shared by MaxPool, AveragePool and LpPool: the shape rule, the work and the iteration over
// outputs.
#pragma once

#include <algorithm>
#include <array>

#include "ops/convolution/window.h"
#include "ops/op.h"

namespace tessera::ops {

// The shape of the pooled input; nullopt if the input's rank is unknown. Throws InvalidModel.
std::optional<Shape> pooled_shape(const InferContext& context);
// The same for an input of another shape than the node has; null if its rank is unknown.
std::optional<Shape> pooled_shape(const InferContext& context, const Shape* input);

// The reference kernel of AveragePool.
void run_average_pool(const KernelCall& call);

Window pool_window(const KernelCall& call);

// One operation per tap of each output.
int64_t pool_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs);

// The input position that `tap` of `output` reads; inside the input only for taps_inside().
inline int64_t input_position(const WindowAxis& axis, int64_t output, int64_t tap) {
  return output * axis.stride + tap * axis.dilation - axis.pad_begin;
}

// Calls visit(element) for every element of `channel` that the window of `output` reads.
template <class T, class Visit>
void visit_window(const T* channel, const Window& window, const std::array<int64_t, 3>& output,
                  const Visit& visit) {
  const TapRange planes = taps_inside(window[0], output[0]);
  const TapRange rows = taps_inside(window[1], output[1]);
  const TapRange columns = taps_inside(window[2], output[2]);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const T* source = channel + (input_position(window[0], output[0], plane) * window[1].input +
                                   input_position(window[1], output[1], row)) *
                                      window[2].input;
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        visit(source[input_position(window[2], output[2], column)]);
      }
    }
  }
}

// Calls visit(channel, index, output) for every output of `channels` channels (batch times
// channels). `index` is the linear index of `output` in its channel.
template <class Visit>
void for_each_output(ThreadPool& pool, const Window& window, int64_t channels, const Visit& visit) {
  const int64_t outputs = output_count(window);
  pool.parallel_for(channels * outputs, 512, [&](int64_t begin, int64_t end) {
    for (int64_t output_index = begin; output_index < end; ++output_index) {
      const int64_t index = output_index % outputs;
      const int64_t row = index / window[2].output;
      visit(output_index / outputs, index,
            std::array<int64_t, 3>{row / window[1].output, row % window[1].output,
                                   index % window[2].output});
    }
  });
}

}  // namespace tessera::ops
