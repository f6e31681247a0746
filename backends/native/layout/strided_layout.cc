#include "layout/strided_layout.h"

#include <algorithm>
#include <array>

namespace tessera::native {

namespace {

constexpr size_t kMinRank = 3;
constexpr size_t kMaxRank = 5;

// Strides of a dense tensor whose axes lie in memory in `order`, the outermost first.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims,
                                const std::vector<size_t>& order) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = 1;
  for (size_t position = order.size(); position-- > 0;) {
    strides[order[position]] = stride;
    stride *= dims[order[position]];
  }
  return strides;
}

std::vector<size_t> identity_order(size_t rank) {
  std::vector<size_t> order;
  for (size_t axis = 0; axis < rank; ++axis) order.push_back(axis);
  return order;
}

}  // namespace

int64_t StridedLayout::elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

StridedLayout strided_layout(const std::string& layout, const std::vector<int64_t>& dims) {
  if (layout == TESSERA_LAYOUT_DEFAULT)
    return {dims, strides_of(dims, identity_order(dims.size()))};
  if (dims.size() < kMinRank || dims.size() > kMaxRank) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "layout '" + layout + "' holds 3 to 5 axes");
  }
  if (layout == "nhwc") {
    std::vector<size_t> order = {0};
    for (size_t axis = 2; axis < dims.size(); ++axis) order.push_back(axis);
    order.push_back(1);
    return {dims, strides_of(dims, order)};
  }
  StridedLayout blocked;
  blocked.block = layout == "nchw8c" ? 8 : 16;
  blocked.dims = dims;
  blocked.dims[1] = (dims[1] + blocked.block - 1) / blocked.block;
  blocked.dims.push_back(blocked.block);
  blocked.strides = strides_of(blocked.dims, identity_order(blocked.dims.size()));
  return blocked;
}

bool has_channels(const plugin::Type& type) {
  constexpr std::array kTypes = {TESSERA_FLOAT32, TESSERA_INT8, TESSERA_UINT8, TESSERA_INT32};
  return std::ranges::find(kTypes, type.data_type) != kTypes.end() &&
         type.dims.size() >= kMinRank && type.dims.size() <= kMaxRank;
}

}  // namespace tessera::native
