// Softmax with the scaling and the mask that precede it in attention.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// A tensor [outer, length, inner] that is normalized over `length`.
struct SoftmaxRows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

// The axis of a Softmax or LogSoftmax.
struct SoftmaxAxis {
  int64_t axis = 0;
  bool is_single = true;  // else all axes from `axis` on are normalized together
};

SoftmaxAxis softmax_axis_of(const plugin::Node& node, size_t rank);
// The rows of an input that has these dimensions.
SoftmaxRows softmax_rows_of(const SoftmaxAxis& along, std::span<const int64_t> dims);

// The largest rank of a tensor to which a mask is added.
inline constexpr size_t kMaxMaskedRank = 16;

// A tensor that is added to all rows, in runs of `run_rows` rows whose addends are at equal
// distances.
struct SoftmaxMask {
  int64_t run_rows = 1;
  int64_t row_stride = 0;
  size_t rank = 0;  // of the runs
  std::array<int64_t, kMaxMaskedRank> lengths = {};
  std::array<int64_t, kMaxMaskedRank> strides = {};

  // The offset of the addends of the first row of a run, in elements.
  int64_t offset(int64_t run) const {
    int64_t offset = 0;
    for (size_t axis = rank; axis-- > 0;) {
      offset += run % lengths[axis] * strides[axis];
      run /= lengths[axis];
    }
    return offset;
  }
};

// How a mask of dimensions `mask` is added to rows of `full`. Requires that each row adds a whole
// row of the mask, as the mask of a PreparedSoftmax does.
SoftmaxMask softmax_mask_of(std::span<const int64_t> mask, std::span<const int64_t> full);

// Softmax(x * scale + mask) over the last axis, in float32.
struct PreparedSoftmax {
  std::vector<int32_t> nodes;  // ascending
  plugin::Value x;
  std::optional<plugin::Value> mask_value;
  plugin::Value result;
  bool is_log = false;
  SoftmaxAxis along;
  float scale = 1;
};

// The node alone, without scale and mask; nullopt for other types and axes.
std::optional<PreparedSoftmax> plain_softmax(const plugin::Node& node);

// The groups of a softmax with a scale, a mask or both, the largest first. Groups may overlap.
std::vector<PreparedSoftmax> find_prepared_softmaxes(const plugin::Graph& graph);

}  // namespace tessera::native
