// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "convolution/winograd_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convolution/winograd_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Blocks have at least 16 channels.
using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

HWY_INLINE Vector scaled(float factor, Vector x, Vector sum) {
  return hn::MulAdd(hn::Set(Tag(), factor), x, sum);
}

// The transforms of one row or column of a tile.
template <int kTile>
struct Transform;

template <>
struct Transform<4> {
  HWY_INLINE static void read(const Vector* from, Vector (&to)[6]) {
    const auto d = [&](int index) HWY_ATTR { return from[index]; };
    const Vector even = scaled(-4, d(2), d(4));
    const Vector odd = scaled(-4, d(1), d(3));
    const Vector even_half = hn::Sub(d(4), d(2));
    const Vector odd_half = hn::Sub(d(3), d(1));
    to[0] = scaled(4, d(0), scaled(-5, d(2), d(4)));
    to[1] = hn::Add(even, odd);
    to[2] = hn::Sub(even, odd);
    to[3] = scaled(2, odd_half, even_half);
    to[4] = scaled(-2, odd_half, even_half);
    to[5] = scaled(4, d(1), scaled(-5, d(3), d(5)));
  }
  HWY_INLINE static void write(const Vector* from, Vector (&to)[4]) {
    const auto m = [&](int index) HWY_ATTR { return from[index]; };
    const Vector near_sum = hn::Add(m(1), m(2));
    const Vector near_difference = hn::Sub(m(1), m(2));
    const Vector far_sum = hn::Add(m(3), m(4));
    const Vector far_difference = hn::Sub(m(3), m(4));
    to[0] = hn::Add(hn::Add(m(0), near_sum), far_sum);
    to[1] = scaled(2, far_difference, near_difference);
    to[2] = scaled(4, far_sum, near_sum);
    to[3] = hn::Add(scaled(8, far_difference, near_difference), m(5));
  }
};

template <>
struct Transform<2> {
  HWY_INLINE static void read(const Vector* from, Vector (&to)[4]) {
    const auto d = [&](int index) HWY_ATTR { return from[index]; };
    to[0] = hn::Sub(d(0), d(2));
    to[1] = hn::Add(d(1), d(2));
    to[2] = hn::Sub(d(2), d(1));
    to[3] = hn::Sub(d(1), d(3));
  }
  HWY_INLINE static void write(const Vector* from, Vector (&to)[2]) {
    const auto m = [&](int index) HWY_ATTR { return from[index]; };
    to[0] = hn::Add(hn::Add(m(0), m(1)), m(2));
    to[1] = hn::Sub(hn::Sub(m(1), m(2)), m(3));
  }
};

HWY_INLINE int64_t offset_of(const WinogradFeatureMap& map, int64_t channel) {
  return channel / map.block * map.block_stride + channel % map.block;
}

// Of `size` indices from `first` on, those within [0, length).
struct Range {
  int begin = 0;
  int end = 0;
};
HWY_INLINE Range inside(int64_t first, int64_t length, int size) {
  return {static_cast<int>(std::clamp<int64_t>(-first, 0, size)),
          static_cast<int>(std::clamp<int64_t>(length - first, 0, size))};
}

HWY_INLINE bool is_whole(const Range& range, int size) { return range.end - range.begin == size; }

// Fetches the lines of the next tile of the same row, whose first `count` columns begin at `from`.
template <int kForWriting, int kRows, int kColumns>
HWY_INLINE void fetch(const WinogradFeatureMap& map, const float* from) {
  for (int row = 0; row < kRows; ++row, from += map.columns * map.pixel) {
    for (int column = 0; column < kColumns; ++column) {
      __builtin_prefetch(from + column * map.pixel, kForWriting, 3);
    }
  }
}

// Transforms the pixels of 16 channels, or as many as a vector has.
template <int kTile, class Load>
HWY_INLINE void transform_pixels(int64_t plane, const Load& load, float* to) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  Vector half[kSize * kSize];
  Vector made[kSize];
  for (int column = 0; column < kSize; ++column) {
    Vector pixels[kSize];
    for (int row = 0; row < kSize; ++row) pixels[row] = load(row, column);
    Transform<kTile>::read(pixels, made);
    for (int row = 0; row < kSize; ++row) half[row * kSize + column] = made[row];
  }
  for (int row = 0; row < kSize; ++row) {
    Transform<kTile>::read(half + row * kSize, made);
    for (int column = 0; column < kSize; ++column, to += plane) {
      hn::StoreU(made[column], Tag(), to);
    }
  }
}

template <int kTile>
void read(const WinogradFeatureMap& map, const WinogradTile& tile, const float* from, float* to) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  const Tag d;
  const Range rows = inside(tile.row, map.rows, kSize);
  const Range columns = inside(tile.column, map.columns, kSize);
  const int64_t line = map.columns * map.pixel;
  const int64_t first = tile.row * line + tile.column * map.pixel;
  if (is_whole(rows, kSize) && is_whole(columns, kSize)) {
    for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
      const float* pixels = from + offset_of(map, channel) + first;
      fetch<0, kSize, kTile>(map, pixels + kSize * map.pixel);
      transform_pixels<kTile>(
          tile.plane,
          [&](int row, int column)
              HWY_ATTR { return hn::LoadU(d, pixels + row * line + column * map.pixel); },
          to + channel);
    }
    return;
  }
  Vector pixels[kSize * kSize];
  for (Vector& pixel : pixels) pixel = hn::Zero(d);
  for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
    const int64_t start = offset_of(map, channel) + first;
    fetch<0, kSize, kTile>(map, from + start + kSize * map.pixel);
    for (int row = rows.begin; row < rows.end; ++row) {
      for (int column = columns.begin; column < columns.end; ++column) {
        pixels[row * kSize + column] =
            hn::LoadU(d, from + (start + row * line + column * map.pixel));
      }
    }
    transform_pixels<kTile>(
        tile.plane, [&](int row, int column) HWY_ATTR { return pixels[row * kSize + column]; },
        to + channel);
  }
}

// The epilogue is known when compiled, because it is applied to each output.
template <int kTile, bool kHasAddend, bool kHasRelu>
void write_with(const WinogradFeatureMap& map, const WinogradTile& tile,
                const WinogradEpilogue& epilogue, const float* from, float* to) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  const Tag d;
  const Range rows = inside(tile.row, map.rows, kTile);
  const Range columns = inside(tile.column, map.columns, kTile);
  const bool is_inside = is_whole(rows, kTile) && is_whole(columns, kTile);
  const int64_t line = map.columns * map.pixel;
  const int64_t first = tile.row * line + tile.column * map.pixel;
  for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
    const Vector bias =
        epilogue.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, epilogue.bias + channel);
    const int64_t start = offset_of(map, channel) + first;
    const auto store = [&](int row, int column, Vector sum) HWY_ATTR {
      const int64_t position = start + row * line + column * map.pixel;
      Vector result = hn::Add(sum, bias);
      if (kHasAddend) result = hn::Add(result, hn::LoadU(d, epilogue.addend + position));
      // A NaN stays.
      if (kHasRelu) result = hn::IfThenZeroElse(hn::Lt(result, hn::Zero(d)), result);
      hn::StoreU(result, d, to + position);
    };
    fetch<1, kTile, kTile>(map, to + start + kTile * map.pixel);
    if (kHasAddend) fetch<0, kTile, kTile>(map, epilogue.addend + start + kTile * map.pixel);
    Vector half[kTile * kSize];
    Vector made[kTile];
    for (int column = 0; column < kSize; ++column) {
      Vector positions[kSize];
      for (int row = 0; row < kSize; ++row) {
        positions[row] = hn::LoadU(d, from + (row * kSize + column) * tile.plane + channel);
      }
      Transform<kTile>::write(positions, made);
      for (int row = 0; row < kTile; ++row) half[row * kSize + column] = made[row];
    }
    if (is_inside) {
      for (int row = 0; row < kTile; ++row) {
        Transform<kTile>::write(half + row * kSize, made);
        for (int column = 0; column < kTile; ++column) store(row, column, made[column]);
      }
      continue;
    }
    for (int row = rows.begin; row < rows.end; ++row) {
      Transform<kTile>::write(half + row * kSize, made);
      for (int column = columns.begin; column < columns.end; ++column) {
        store(row, column, made[column]);
      }
    }
  }
}

template <int kTile>
void write(const WinogradFeatureMap& map, const WinogradTile& tile,
           const WinogradEpilogue& epilogue, const float* from, float* to) {
  const bool has_addend = epilogue.addend != nullptr;
  if (has_addend && epilogue.has_relu) {
    write_with<kTile, true, true>(map, tile, epilogue, from, to);
  } else if (has_addend) {
    write_with<kTile, true, false>(map, tile, epilogue, from, to);
  } else if (epilogue.has_relu) {
    write_with<kTile, false, true>(map, tile, epilogue, from, to);
  } else {
    write_with<kTile, false, false>(map, tile, epilogue, from, to);
  }
}

WinogradLoops loops_of_four() { return {read<4>, write<4>}; }
WinogradLoops loops_of_two() { return {read<2>, write<2>}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {

HWY_EXPORT(loops_of_four);
HWY_EXPORT(loops_of_two);

constexpr double kFourWeights[6][kTaps] = {{1.0 / 4, 0, 0},
                                           {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                           {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                           {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                           {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                           {0, 0, 1}};
constexpr double kTwoWeights[4][kTaps] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

// factors * weights * factors^T, in double, because weights are transformed only once.
template <int kSize>
void transform_by(const double (&factors)[kSize][kTaps], const float* from, float* to) {
  double half[kSize][kTaps] = {};
  for (int row = 0; row < kSize; ++row) {
    for (int tap = 0; tap < kTaps; ++tap) {
      for (int column = 0; column < kTaps; ++column) {
        half[row][column] += factors[row][tap] * static_cast<double>(from[tap * kTaps + column]);
      }
    }
  }
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      double sum = 0;
      for (int tap = 0; tap < kTaps; ++tap) sum += half[row][tap] * factors[column][tap];
      to[row * kSize + column] = static_cast<float>(sum);
    }
  }
}

}  // namespace

WinogradLoops find_winograd_loops(int64_t tile) {
  return tile == 4 ? HWY_DYNAMIC_DISPATCH(loops_of_four)() : HWY_DYNAMIC_DISPATCH(loops_of_two)();
}

void transform_weights(int64_t tile, const float* from, float* to) {
  if (tile == 4) return transform_by(kFourWeights, from, to);
  transform_by(kTwoWeights, from, to);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
