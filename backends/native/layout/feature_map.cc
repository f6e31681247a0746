#include "layout/feature_map.h"

#include <algorithm>

namespace tessera::native {

namespace {

constexpr size_t kMinMapRank = 3;
constexpr size_t kMaxMapRank = 5;

int64_t lanes_of(ChannelLayout layout, int64_t channels) {
  switch (layout) {
    case ChannelLayout::Nchw16c:
      return 16;
    case ChannelLayout::Nchw8c:
      return 8;
    case ChannelLayout::Nhwc:
      return channels;
  }
  return 1;
}

int64_t pixels_of(std::span<const int64_t> dims) {
  int64_t pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) pixels *= dims[axis];
  return pixels;
}

}  // namespace

const char* layout_name(ChannelLayout layout) {
  switch (layout) {
    case ChannelLayout::Nchw16c:
      return "nchw16c";
    case ChannelLayout::Nchw8c:
      return "nchw8c";
    case ChannelLayout::Nhwc:
      return "nhwc";
  }
  return "";
}

bool differs_from_row_major(ChannelLayout layout, const std::vector<int64_t>& dims) {
  if (dims.size() < kMinMapRank || dims.size() > kMaxMapRank) return false;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return false;
  const bool is_one_pixel = pixels_of(dims) == 1;
  if (layout == ChannelLayout::Nhwc) return !is_one_pixel && dims[1] != 1;
  return !is_one_pixel || dims[1] % lanes_of(layout, dims[1]) != 0;
}

FeatureMap feature_map_of(ChannelLayout layout, std::span<const int64_t> dims) {
  FeatureMap map = {.images = dims[0], .channels = dims[1]};
  map.pixels = pixels_of(dims);
  map.lanes = lanes_of(layout, dims[1]);
  map.blocks = (dims[1] + map.lanes - 1) / map.lanes;
  return map;
}

FeatureMap row_major_feature_map(std::span<const int64_t> dims) {
  FeatureMap map = {.images = dims[0], .channels = dims[1]};
  map.blocks = dims[1];
  map.pixels = pixels_of(dims);
  return map;
}

Padding padding_of(const FeatureMap& map) {
  Padding padding;
  padding.images = map.images;
  padding.image_elements = map.blocks * map.pixels * map.lanes;
  padding.last_block = (map.blocks - 1) * map.pixels * map.lanes;
  padding.pixels = map.pixels;
  padding.block = map.lanes;
  padding.used_lanes = map.channels - (map.blocks - 1) * map.lanes;
  return padding;
}

}  // namespace tessera::native
