// The shared layouts with channels: conversions from one to another.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/divide_up.h"
#include "base/families.h"
#include "base/grain.h"
#include "copy/strided_copy.h"
#include "layout/padding.h"
#include "layout/strided_layout.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;
using plugin::Type;

namespace {

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

  int64_t channels() const { return outer * middle * inner; }
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
                    const ChannelStrides& to, int64_t element_bytes, const CopyKernels& kernels,
                    int64_t output_bytes) {
  LoopNest nest;
  nest.add(extent.images, from.image_stride, to.image_stride);
  nest.add(range.outer, from.distance(range.outer_step), to.distance(range.outer_step));
  nest.add(range.middle, from.distance(range.middle_step), to.distance(range.middle_step));
  nest.add(range.inner, from.stride, to.stride);
  nest.add(extent.pixels, from.pixel_stride, to.pixel_stride);
  return {nest, element_bytes, kernels, output_bytes};
}

// If a pixel has at most this many blocks of channels, copying the blocks of one pixel is too
// little for a call: many pixels of one block are copied at once.
constexpr int64_t kFewBlocks = 8;

// A conversion of one tensor.
class Conversion {
 public:
  Conversion(const std::string& source_layout, const std::string& target_layout, const Buffer& from,
             const Buffer& to, const CopyKernels& kernels)
      : extent_(extent_of(from)),
        source_(channel_strides_in(source_layout, extent_)),
        target_(channel_strides_in(target_layout, extent_)),
        from_(from.as<const char>()),
        to_(to.as<char>()),
        element_bytes_(plugin::element_bytes(from.data_type)),
        kernels_(kernels) {
    const int64_t wide = std::max(source_.block, target_.block);
    const int64_t narrow = std::min(source_.block, target_.block);
    ranges_ = ranges_of(extent_.channels, wide, narrow == 1 ? wide : narrow);
    const bool joins_blocks = source_.block > 1 && target_.block == 1 && target_.stride == 1;
    if (joins_blocks && ranges_[0].outer > 1 && ranges_[0].outer <= kFewBlocks &&
        output_bytes() < kStreamedCopyBytes) {
      first_in_chunks_ = 0;
    } else if (extent_.channels % target_.block != 0) {
      first_in_chunks_ = 1;  // the first range has whole blocks only
    }
  }

  void run(RunContext& context) const {
    for (size_t index = 0; index < first_in_chunks_; ++index) {
      if (ranges_[index].channels() > 0) run_range(context, ranges_[index]);
    }
    if (first_in_chunks_ < ranges_.size()) run_chunks(context);
  }

 private:
  int64_t output_bytes() const { return extent_.images * target_.image_stride * element_bytes_; }

  void run_range(RunContext& context, const ChannelRange& range) const {
    const StridedCopy copy =
        copy_of(range, extent_, source_, target_, element_bytes_, kernels_, output_bytes());
    const char* from = from_ + source_.offset(range.first) * element_bytes_;
    char* to = to_ + target_.offset(range.first) * element_bytes_;
    context.parallel_for(copy.units(), copy.units_of(kGrainBytes),
                         [&](int64_t begin, int64_t end) { copy.run(begin, end, from, to); });
  }

  // Copies the ranges from first_in_chunks_ on, some pixels at a time, so that they meet in a cache
  // with each other and with the zeros of the padding.
  void run_chunks(RunContext& context) const {
    int64_t channels = 0;
    for (size_t index = first_in_chunks_; index < ranges_.size(); ++index) {
      channels += ranges_[index].channels();
    }
    // Whole lines of a row-major image.
    const int64_t line_pixels = 64 / element_bytes_;
    const int64_t pixels =
        std::max<int64_t>(1, kGrainBytes / (channels * element_bytes_) / line_pixels) * line_pixels;
    const int64_t chunks = divide_up(extent_.pixels, pixels);
    const std::array<StridedCopy, 3> whole = chunk_copies(std::min(pixels, extent_.pixels));
    const std::array<StridedCopy, 3> last = chunk_copies(extent_.pixels - (chunks - 1) * pixels);
    context.parallel_for(extent_.images * chunks, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        const int64_t first = begin % chunks * pixels;
        const int64_t count = std::min(pixels, extent_.pixels - first);
        const int64_t image = begin / chunks;
        const char* from =
            from_ + (image * source_.image_stride + first * source_.pixel_stride) * element_bytes_;
        char* to =
            to_ + (image * target_.image_stride + first * target_.pixel_stride) * element_bytes_;
        if (extent_.channels % target_.block != 0) clear_last_block(to, count);
        const auto& copies = begin % chunks == chunks - 1 ? last : whole;
        for (size_t index = first_in_chunks_; index < ranges_.size(); ++index) {
          if (ranges_[index].channels() == 0) continue;
          for (int64_t block = 0; block < ranges_[index].outer; ++block) {
            const int64_t channel = ranges_[index].first + block * ranges_[index].outer_step;
            copies[index].run(0, copies[index].units(),
                              from + source_.offset(channel) * element_bytes_,
                              to + target_.offset(channel) * element_bytes_);
          }
        }
      }
    });
  }

  // One outer step of each range in chunks.
  std::array<StridedCopy, 3> chunk_copies(int64_t pixels) const {
    std::array<StridedCopy, 3> copies;
    for (size_t index = first_in_chunks_; index < ranges_.size(); ++index) {
      if (ranges_[index].channels() == 0) continue;
      ChannelRange block = ranges_[index];
      block.outer = 1;
      copies[index] = copy_of(block, {1, extent_.channels, pixels}, source_, target_,
                              element_bytes_, kernels_, output_bytes());
    }
    return copies;
  }

  // Sets the last block of channels of `pixels` pixels to zero, as the contract demands for
  // padding.
  void clear_last_block(char* to, int64_t pixels) const {
    const int64_t start = extent_.channels / target_.block * target_.block_stride;
    std::memset(to + start * element_bytes_, 0,
                static_cast<size_t>(pixels * target_.block * element_bytes_));
  }

  Extent extent_;
  ChannelStrides source_;
  ChannelStrides target_;
  const char* from_;
  char* to_;
  int64_t element_bytes_;
  const CopyKernels& kernels_;
  std::array<ChannelRange, 3> ranges_;
  size_t first_in_chunks_ = 3;  // all ranges before it are copied for all pixels at once
};

class Converter {
 public:
  Converter(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void operator()(RunContext& context, const Buffer& from, const Buffer& to) const {
    if (from.elements() == 0) return;
    Conversion(from_, to_, from, to, kernels_).run(context);
  }

 private:
  std::string from_;
  std::string to_;
  CopyKernels kernels_;
};

std::optional<int64_t> storage_bytes(const std::string& layout, const Type& type) {
  if (!type.is_known() || !has_channels(type)) return std::nullopt;
  return dense_storage(layout, type).elements * plugin::element_bytes(type.data_type);
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
