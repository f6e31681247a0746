// The shared layouts with channels: conversions from one to another.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/families.h"
#include "copy/strided_copy.h"
#include "layout/padding.h"
#include "layout/strided_layout.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;
using plugin::Type;

namespace {

constexpr int64_t kElementBytes = 4;  // has_channels() accepts only float32
// The minimum amount of work for one thread.
constexpr int64_t kGrainBytes = int64_t{64} * 1024;

struct Extent {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t pixels = 1;
};

Extent extent_of(const Buffer& buffer) {
  Extent extent = {buffer.sizes()[0], buffer.sizes()[1], 1};
  for (const int64_t dim : buffer.sizes().subspan(2)) extent.pixels *= dim;
  return extent;
}

// The offset of element (image, channel, pixel) in a layout: images one after the other, each with
// its channels in blocks. If `block` is 1, all neighbouring channels have the same distance.
struct ChannelStrides {
  int64_t block = 1;
  int64_t stride = 1;  // between neighbouring channels of a block, or of all
  int64_t block_stride = 1;
  int64_t pixel_stride = 1;
  int64_t image_stride = 1;

  int64_t offset(int64_t channel) const {
    return channel / block * block_stride + channel % block * stride;
  }
  // The distance between a channel and the one `count` further, both at the same offset in their
  // blocks.
  int64_t distance(int64_t count) const {
    return count < block ? count * stride : count / block * block_stride;
  }
};

ChannelStrides channel_strides_in(const std::string& layout, const Extent& extent) {
  const int64_t image = extent.channels * extent.pixels;
  if (layout == TESSERA_LAYOUT_DEFAULT) return {1, extent.pixels, extent.pixels, 1, image};
  if (layout == "nhwc") return {1, 1, 1, extent.channels, image};
  const int64_t block = channel_block(layout);
  const int64_t blocks = (extent.channels + block - 1) / block;
  return {block, 1, block * extent.pixels, block, blocks * block * extent.pixels};
}

// Channels from `first` on, as `outer` x `middle` x `inner` of them: channel first + i * outer_step
// + j * middle_step + k.
struct ChannelRange {
  int64_t first = 0;
  int64_t outer = 1;
  int64_t outer_step = 1;
  int64_t middle = 1;
  int64_t middle_step = 1;
  int64_t inner = 1;
};

// The channels in whole blocks of both layouts, those in whole blocks of the layout with narrower
// blocks, and the rest.
std::array<ChannelRange, 3> ranges_of(int64_t channels, int64_t wide, int64_t narrow) {
  const int64_t left = channels % wide;
  const int64_t rest = left % narrow;
  return {{{0, channels / wide, wide, wide / narrow, narrow, narrow},
           {channels - left, 1, wide, left / narrow, narrow, narrow},
           {channels - rest, 1, wide, 1, narrow, rest}}};
}

StridedCopy copy_of(const ChannelRange& range, const Extent& extent, const ChannelStrides& from,
                    const ChannelStrides& to, const CopyKernels& kernels) {
  LoopNest nest;
  nest.add(extent.images, from.image_stride, to.image_stride);
  nest.add(range.outer, from.distance(range.outer_step), to.distance(range.outer_step));
  nest.add(range.middle, from.distance(range.middle_step), to.distance(range.middle_step));
  nest.add(range.inner, from.stride, to.stride);
  nest.add(extent.pixels, from.pixel_stride, to.pixel_stride);
  return {nest, kElementBytes, kernels, extent.images * to.image_stride * kElementBytes};
}

class Converter {
 public:
  Converter(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void operator()(RunContext& context, const Buffer& from, const Buffer& to) const {
    const Extent extent = extent_of(from);
    if (from.elements() == 0) return;
    const ChannelStrides source = channel_strides_in(from_, extent);
    const ChannelStrides target = channel_strides_in(to_, extent);
    const int64_t wide = std::max(source.block, target.block);
    const int64_t narrow = std::min(source.block, target.block);
    for (const ChannelRange& range :
         ranges_of(extent.channels, wide, narrow == 1 ? wide : narrow)) {
      if (range.outer * range.middle * range.inner == 0) continue;
      const StridedCopy copy = copy_of(range, extent, source, target, kernels_);
      const char* begin = from.as<const char>() + source.offset(range.first) * kElementBytes;
      char* result = to.as<char>() + target.offset(range.first) * kElementBytes;
      context.parallel_for(
          copy.units(), copy.units_of(kGrainBytes),
          [&](int64_t first, int64_t last) { copy.run(first, last, begin, result); });
    }
    clear_padding(context, padding_of(extent, target), to.data, kElementBytes);
  }

 private:
  static Padding padding_of(const Extent& extent, const ChannelStrides& layout) {
    if (layout.block == 1) return {};
    const int64_t blocks = (extent.channels + layout.block - 1) / layout.block;
    return {.images = extent.images,
            .image_elements = layout.image_stride,
            .last_block = (blocks - 1) * layout.block_stride,
            .pixels = extent.pixels,
            .block = layout.block,
            .used_lanes = extent.channels - (blocks - 1) * layout.block};
  }

  std::string from_;
  std::string to_;
  CopyKernels kernels_;
};

std::optional<int64_t> storage_bytes(const std::string& layout, const Type& type) {
  if (!type.is_known() || !has_channels(type)) return std::nullopt;
  return dense_storage(layout, type).elements * kElementBytes;
}

}  // namespace

std::vector<plugin::Layout> shared_layouts() {
  std::vector<plugin::Layout> layouts;
  for (const std::string& name : kSharedLayouts) {
    if (name == TESSERA_LAYOUT_DEFAULT) continue;
    plugin::Layout layout;
    layout.name = name;
    layout.storage_bytes = [name](const Type& type) { return storage_bytes(name, type); };
    layout.to_default = Converter(name, TESSERA_LAYOUT_DEFAULT);
    layout.from_default = Converter(TESSERA_LAYOUT_DEFAULT, name);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

std::vector<plugin::Conversion> direct_conversions() {
  std::vector<plugin::Conversion> conversions;
  for (const std::string& from : kSharedLayouts) {
    for (const std::string& to : kSharedLayouts) {
      if (from == to || from == TESSERA_LAYOUT_DEFAULT || to == TESSERA_LAYOUT_DEFAULT) continue;
      conversions.push_back({from, to, Converter(from, to)});
    }
  }
  return conversions;
}

}  // namespace tessera::native
