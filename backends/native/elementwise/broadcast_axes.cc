#include "elementwise/broadcast_axes.h"

#include <algorithm>

#include "layout/padding.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

namespace {

constexpr size_t kChannelAxis = 1;

int64_t blocks_of(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

// `values` of the dimensions, in the order in which 'nhwc' stores them.
std::vector<int64_t> channels_last(std::vector<int64_t> values) {
  std::rotate(values.begin() + kChannelAxis, values.begin() + kChannelAxis + 1, values.end());
  return values;
}

// The strides of an operand whose storage has the same axes as that of the result.
std::vector<int64_t> same_axes(const std::vector<int64_t>& sizes,
                               const std::vector<int64_t>& result_sizes) {
  std::vector<int64_t> strides = plugin::dense_strides(sizes);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1 && result_sizes[axis] != 1) strides[axis] = 0;
  }
  return strides;
}

}  // namespace

std::vector<int64_t> storage_sizes(const std::string& layout, const std::vector<int64_t>& dims) {
  const int64_t block = channel_block(layout);
  if (layout == "nhwc") return channels_last(dims);
  if (block == 0) return dims;
  std::vector<int64_t> sizes = dims;
  sizes[kChannelAxis] = blocks_of(dims[kChannelAxis], block);
  sizes.push_back(block);
  return sizes;
}

std::vector<int64_t> strides_in(const std::string& result_layout,
                                const std::vector<int64_t>& result_dims,
                                const BroadcastOperand& operand, bool is_padded) {
  const int64_t block = channel_block(result_layout);
  const bool is_row_major = operand.layout != result_layout;
  if (!is_row_major) {
    std::vector<int64_t> strides = same_axes(storage_sizes(result_layout, operand.dims),
                                             storage_sizes(result_layout, result_dims));
    // A single channel, in the first lane of its block, is repeated.
    if (block != 0 && operand.dims[kChannelAxis] == 1 && result_dims[kChannelAxis] != 1) {
      strides[kChannelAxis] = 0;
      strides.back() = 0;
    }
    return strides;
  }
  std::vector<int64_t> sizes = operand.dims;
  if (block != 0 && is_padded && sizes[kChannelAxis] != 1) {
    sizes[kChannelAxis] = blocks_of(sizes[kChannelAxis], block) * block;
  }
  std::vector<int64_t> strides = plugin::dense_strides(sizes);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (operand.dims[axis] == 1) strides[axis] = 0;
  }
  if (result_layout == "nhwc") return channels_last(strides);
  if (block == 0) return strides;
  strides.push_back(strides[kChannelAxis]);
  strides[kChannelAxis] *= block;
  return strides;
}

LoopAxes merged_axes(const std::vector<int64_t>& sizes,
                     const std::vector<std::vector<int64_t>>& strides) {
  LoopAxes axes;
  axes.strides.resize(strides.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1) continue;
    bool is_merged = !axes.sizes.empty();
    for (size_t operand = 0; is_merged && operand < strides.size(); ++operand) {
      is_merged = axes.strides[operand].back() == strides[operand][axis] * sizes[axis];
    }
    if (!is_merged) axes.sizes.push_back(1);
    axes.sizes.back() *= sizes[axis];
    for (size_t operand = 0; operand < strides.size(); ++operand) {
      if (!is_merged) axes.strides[operand].push_back(0);
      axes.strides[operand].back() = strides[operand][axis];
    }
  }
  if (!axes.sizes.empty()) return axes;
  axes.sizes.push_back(1);
  for (std::vector<int64_t>& operand : axes.strides) operand.push_back(1);
  return axes;
}

}  // namespace tessera::native
