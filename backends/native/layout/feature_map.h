// A feature map in memory: images, each of blocks of channels, each of pixels, each of which has
// the channels of the block side by side.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/padding.h"
#include "tessera/backend.h"

namespace tessera::native {

// The shared layouts with channels, without row-major.
enum class ChannelLayout : uint8_t { Nchw16c, Nchw8c, Nhwc };

inline constexpr std::array kChannelLayouts = {ChannelLayout::Nchw16c, ChannelLayout::Nchw8c,
                                               ChannelLayout::Nhwc};

const char* layout_name(ChannelLayout layout);

struct FeatureMap {
  int64_t images = 1;
  int64_t blocks = 1;  // of channels, for each image
  int64_t pixels = 1;
  int64_t lanes = 1;     // channels in a block
  int64_t channels = 1;  // of an image, without padding

  bool is_padded() const { return blocks * lanes != channels; }
  int64_t elements() const { return images * blocks * pixels * lanes; }
};

// The number of images or channels of input 0, for kernels that are built for it.
inline constexpr tessera_built_for kBuiltForImages = {.input_port = 0, .axis = 0};
inline constexpr tessera_built_for kBuiltForChannels = {.input_port = 0, .axis = 1};

// Whether tensors of these sizes have the layout, and it differs from row-major. If it does not
// differ, row-major serves.
bool differs_from_row_major(ChannelLayout layout, const std::vector<int64_t>& dims);

// In row-major order, blocks have one channel.
FeatureMap feature_map_of(ChannelLayout layout, std::span<const int64_t> dims);
FeatureMap row_major_feature_map(std::span<const int64_t> dims);

// The padding of a feature map, for clear_padding().
Padding padding_of(const FeatureMap& map);

}  // namespace tessera::native
