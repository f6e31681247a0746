// Softmax with the scaling and the mask that precede it in attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// A tensor [outer, length, inner] that is normalized over `length`.
struct SoftmaxRows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

// The rows of a Softmax or LogSoftmax whose input has these dimensions.
SoftmaxRows softmax_rows_of(const plugin::Node& node, const std::vector<int64_t>& dims);

// A tensor that is added to all rows, in runs of `run_rows` rows whose addends are at equal
// distances.
struct SoftmaxMask {
  int64_t run_rows = 1;
  int64_t row_stride = 0;
  std::vector<int64_t> lengths;  // of the leading axes
  std::vector<int64_t> strides;

  // The offset of the addends of the first row of a run, in elements.
  int64_t offset(int64_t run) const {
    int64_t offset = 0;
    for (size_t axis = lengths.size(); axis-- > 0;) {
      offset += run % lengths[axis] * strides[axis];
      run /= lengths[axis];
    }
    return offset;
  }
};

// Softmax(x * scale + mask) over the last axis, in float32.
struct PreparedSoftmax {
  std::vector<int32_t> nodes;  // ascending
  plugin::Value x;
  std::optional<plugin::Value> mask_value;
  plugin::Value result;
  bool is_log = false;
  SoftmaxRows rows;
  float scale = 1;
  std::optional<SoftmaxMask> mask;  // how mask_value is read
};

// The node alone, without scale and mask; nullopt for other types and axes.
std::optional<PreparedSoftmax> plain_softmax(const plugin::Node& node);

// The groups of a softmax with a scale, a mask or both, the largest first. Groups may overlap.
std::vector<PreparedSoftmax> find_prepared_softmaxes(const plugin::Graph& graph);

}  // namespace tessera::native
