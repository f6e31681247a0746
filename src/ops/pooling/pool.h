// Shared by MaxPool, AveragePool and LpPool: the shape rule, the work and the iteration over
// outputs.
#pragma once

#include <algorithm>
#include <array>
#include <memory_resource>
#include <utility>
#include <vector>

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

// The taps of one output along one axis that lie inside the input: positions begin, begin +
// dilation, ...
struct AxisReach {
  int64_t begin = 0;
  int64_t count = 0;
};

// What the window of one output reads.
struct OutputWindow {
  const Window& window;
  std::array<int64_t, kMaxSpatialAxes> output = {};  // its position
  std::array<AxisReach, kMaxSpatialAxes> reach = {};
};

// Calls visit(offset) for every element of a channel that the window reads, in the channel's order.
template <class Visit>
void visit_offsets(const OutputWindow& place, const Visit& visit) {
  const auto& [planes, rows, columns] = place.reach;
  const int64_t step = place.window[2].dilation;
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    const int64_t first = (planes.begin + plane * place.window[0].dilation) * place.window[1].input;
    for (int64_t row = 0; row < rows.count; ++row) {
      int64_t offset =
          (first + rows.begin + row * place.window[1].dilation) * place.window[2].input +
          columns.begin;
      for (int64_t column = 0; column < columns.count; ++column, offset += step) visit(offset);
    }
  }
}

// The reach of each output along each axis: found once, because it takes divisions.
class WindowReaches {
 public:
  WindowReaches(const Window& window, std::pmr::memory_resource* memory);

  // That of output number `index` of a channel.
  OutputWindow at(int64_t index) const {
    OutputWindow place = {.window = window_};
    const int64_t row = index / window_[2].output;
    place.output = {row / window_[1].output, row % window_[1].output, index % window_[2].output};
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) set_axis(place, axis);
    return place;
  }
  // Goes to the next output of a channel.
  void advance(OutputWindow& place) const {
    for (size_t axis = kMaxSpatialAxes; axis-- > 0;) {
      const bool is_inside = ++place.output[axis] < window_[axis].output;
      if (!is_inside) place.output[axis] = 0;
      set_axis(place, axis);
      if (is_inside) return;
    }
  }

 private:
  void set_axis(OutputWindow& place, size_t axis) const {
    place.reach[axis] = reaches_[axis][static_cast<size_t>(place.output[axis])];
  }

  const Window& window_;
  std::array<std::pmr::vector<AxisReach>, kMaxSpatialAxes> reaches_;
};

// Calls visit(channel, index, place) for every output of `channels` channels (batch times
// channels). `index` is the number of the output in its channel.
template <class Visit>
void for_each_output(const KernelCall& call, const Window& window, int64_t channels,
                     const Visit& visit) {
  const int64_t outputs = output_count(window);
  const WindowReaches reaches(window, &call.scratch);
  call.pool.parallel_for(channels * outputs, 512, [&](int64_t begin, int64_t end) {
    int64_t channel = begin / outputs;
    int64_t index = begin % outputs;
    OutputWindow place = reaches.at(index);
    for (int64_t output = begin; output < end; ++output) {
      visit(channel, index, std::as_const(place));
      reaches.advance(place);
      if (++index < outputs) continue;
      index = 0;
      ++channel;
    }
  });
}

}  // namespace tessera::ops
