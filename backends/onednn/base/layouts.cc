// Conversions are simple loops of our own, used where no other backend has any. Reorders of oneDNN
// would have to be built, or looked up under a lock, for each conversion.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/formats.h"

namespace tessera::onednn {

using plugin::Buffer;
using plugin::Conversion;
using plugin::Layout;
using plugin::RunContext;
using plugin::Type;

namespace {

// The number of contiguous channels of each pixel: all of them in nhwc, one in row-major.
int64_t block_of(Format format, int64_t channels) {
  switch (format) {
    case Format::RowMajor:
      return 1;
    case Format::Nhwc:
      return channels;
    case Format::Nchw8c:
      return 8;
    case Format::Nchw16c:
      return 16;
  }
  return 1;
}

int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// A tensor in any of the formats: element (image, channel, pixel) is at
//   image * image_stride + channel / block * block * pixels + pixel * block + channel % block.
struct StridedFormat {
  int64_t block = 1;
  int64_t image_stride = 0;
};

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

StridedFormat strided_format(Format format, const Extent& extent) {
  const int64_t block = block_of(format, extent.channels);
  return {block, round_up(extent.channels, block) * extent.pixels};
}

// A vector of four floats.
typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));
constexpr int64_t kQuad = 4;

// Copies a square of four channels and four pixels. On each side, one of the distances between
// neighbours is 1.
void transpose_square(const float* from, int64_t from_row, float* to, int64_t to_row) {
  const auto row = [&](int64_t index) {
    return *reinterpret_cast<const Quad*>(from + index * from_row);
  };
  const Quad a = row(0);
  const Quad b = row(1);
  const Quad c = row(2);
  const Quad d = row(3);
  const Quad low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const auto put = [&](int64_t index, Quad quad) {
    *reinterpret_cast<Quad*>(to + index * to_row) = quad;
  };
  put(0, __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7));
}

// A piece of both tensors: channels that are contiguous blocks in each, for a range of pixels.
template <class T>
struct Piece {
  const T* from = nullptr;
  int64_t from_channel = 1;  // distance between neighbouring channels, and between pixels
  int64_t from_pixel = 1;
  T* to = nullptr;
  int64_t to_channel = 1;
  int64_t to_pixel = 1;
  int64_t channels = 0;
  int64_t pixels = 0;
};

template <class T>
void copy_elements(const Piece<T>& piece, int64_t channel, int64_t channel_end, int64_t pixel,
                   int64_t pixel_end) {
  for (int64_t p = pixel; p < pixel_end; ++p) {
    for (int64_t c = channel; c < channel_end; ++c) {
      piece.to[c * piece.to_channel + p * piece.to_pixel] =
          piece.from[c * piece.from_channel + p * piece.from_pixel];
    }
  }
}

void transpose_piece(const Piece<float>& piece, bool is_transposed) {
  const int64_t channels = piece.channels / kQuad * kQuad;
  const int64_t pixels = piece.pixels / kQuad * kQuad;
  for (int64_t pixel = 0; pixel < pixels; pixel += kQuad) {
    for (int64_t channel = 0; channel < channels; channel += kQuad) {
      const float* from = piece.from + channel * piece.from_channel + pixel * piece.from_pixel;
      float* to = piece.to + channel * piece.to_channel + pixel * piece.to_pixel;
      if (is_transposed) {
        transpose_square(from, piece.from_pixel, to, piece.to_channel);
      } else {
        transpose_square(from, piece.from_channel, to, piece.to_pixel);
      }
    }
  }
  copy_elements(piece, channels, piece.channels, 0, pixels);
  copy_elements(piece, 0, piece.channels, pixels, piece.pixels);
}

template <class T>
void copy_piece(const Piece<T>& piece) {
  const bool is_transposed = piece.from_channel == 1 && piece.to_pixel == 1;
  const bool is_transposed_back = piece.from_pixel == 1 && piece.to_channel == 1;
  if constexpr (std::is_same_v<T, float>) {
    if (piece.channels > 1 && (is_transposed || is_transposed_back)) {
      return transpose_piece(piece, is_transposed);
    }
  }
  copy_elements(piece, 0, piece.channels, 0, piece.pixels);
}

// Padding of the last block holds zeros.
template <class T>
void clear_lanes(const Piece<T>& piece, int64_t lanes) {
  for (int64_t pixel = 0; pixel < piece.pixels; ++pixel) {
    T* lane = piece.to + pixel * piece.to_pixel;
    std::fill(lane + std::min(piece.channels, lanes), lane + lanes, T{});
  }
}

// A few pages, so that the data of one piece stays in the cache.
constexpr int64_t kPieceElements = 8192;
// Smaller tensors are converted by one thread.
constexpr int64_t kGrainElements = 32768;
// Channels that are copied together if neither side has blocks.
constexpr int64_t kChannelTile = 64;

template <class T>
void convert_elements(Format from_format, Format to_format, RunContext& context, const Buffer& from,
                      const Buffer& to) {
  const Extent extent = extent_of(from);
  const StridedFormat source = strided_format(from_format, extent);
  const StridedFormat target = strided_format(to_format, extent);
  const auto tile_of = [&](int64_t block) { return block == 1 ? kChannelTile : block; };
  const int64_t tile = std::min({tile_of(source.block), tile_of(target.block), kChannelTile});
  // Only blocks are padded; their last tile ends with the block.
  const bool has_padding = extent.channels % target.block != 0;
  const int64_t tiles = round_up(round_up(extent.channels, target.block), tile) / tile;
  const int64_t pixels = std::clamp<int64_t>(kPieceElements / tile, 1, extent.pixels);
  const int64_t strips = (extent.pixels + pixels - 1) / pixels;
  const auto offset = [&](const StridedFormat& in, int64_t image, int64_t channel, int64_t pixel) {
    return image * in.image_stride + channel / in.block * in.block * extent.pixels +
           pixel * in.block + channel % in.block;
  };
  const auto copy = [&](int64_t image, int64_t strip, int64_t channel) {
    const int64_t first = strip * pixels;
    const int64_t end = std::min(first + pixels, extent.pixels);
    Piece<T> piece;
    piece.from = from.as<const T>() + offset(source, image, channel, first);
    piece.from_channel = source.block == 1 ? extent.pixels : 1;
    piece.from_pixel = source.block;
    piece.to = to.as<T>() + offset(target, image, channel, first);
    piece.to_channel = target.block == 1 ? extent.pixels : 1;
    piece.to_pixel = target.block;
    piece.channels = std::clamp<int64_t>(extent.channels - channel, 0, tile);
    piece.pixels = end - first;
    copy_piece(piece);
    // A tile of channels of nhwc may fill a block only in part.
    const int64_t lanes = std::min(tile, round_up(extent.channels, target.block) - channel);
    if (has_padding) clear_lanes(piece, lanes);
  };
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (tile * pixels));
  context.parallel_for(extent.images * strips * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      copy(index / tiles / strips, index / tiles % strips, index % tiles * tile);
    }
  });
}

// Quantised feature maps and sums of their products have the same layouts.
bool is_byte_type(int32_t type) { return type == TESSERA_INT8 || type == TESSERA_UINT8; }

void convert(Format from_format, Format to_format, RunContext& context, const Buffer& from,
             const Buffer& to) {
  if (is_byte_type(from.data_type)) {
    return convert_elements<uint8_t>(from_format, to_format, context, from, to);
  }
  convert_elements<float>(from_format, to_format, context, from, to);
}

std::optional<int64_t> storage_bytes(Format format, const Type& type) {
  const bool is_wide = type.data_type == TESSERA_FLOAT32 || type.data_type == TESSERA_INT32;
  if (!is_wide && !is_byte_type(type.data_type)) return std::nullopt;
  if (!type.is_known()) return std::nullopt;
  if (format == Format::RowMajor || !can_hold(format, type.dims.size())) return std::nullopt;
  int64_t elements = type.dims[0];
  for (size_t axis = 2; axis < type.dims.size(); ++axis) elements *= type.dims[axis];
  const int64_t channels = type.dims[1];
  const int64_t block = std::max<int64_t>(1, block_of(format, channels));
  return elements * round_up(channels, block) * plugin::element_bytes(type.data_type);
}

plugin::ConvertFunction conversion(Format from_format, Format to_format) {
  return [=](RunContext& context, const Buffer& from, const Buffer& to) {
    if (from.elements() > 0) convert(from_format, to_format, context, from, to);
  };
}

}  // namespace

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (const Format format : kFormats) {
    if (format == Format::RowMajor) continue;
    Layout layout;
    layout.name = layout_name(format);
    layout.has_simple_conversions = true;
    layout.storage_bytes = [=](const Type& type) { return storage_bytes(format, type); };
    layout.to_default = conversion(format, Format::RowMajor);
    layout.from_default = conversion(Format::RowMajor, format);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

std::vector<Conversion> direct_conversions() {
  std::vector<Conversion> conversions;
  for (const Format from : kFormats) {
    for (const Format to : kFormats) {
      if (from == to || from == Format::RowMajor || to == Format::RowMajor) continue;
      conversions.push_back({layout_name(from), layout_name(to), conversion(from, to)});
    }
  }
  return conversions;
}

}  // namespace tessera::onednn
