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

// The points of F(4 x 4, 3 x 3) are 0, +-kNear, +-kFar and infinity. All powers and products of
// them below are floats, so that nothing but the results of operations is rounded.
constexpr float kNear = 11.0F / 16;
constexpr float kFar = 3.0F / 2;

constexpr float squared(float x) { return x * x; }
constexpr float cubed(float x) { return x * x * x; }

template <>
struct Transform<4> {
  HWY_INLINE static void read(const Vector* from, Vector (&to)[6]) {
    const auto d = [&](int index) HWY_ATTR { return from[index]; };
    constexpr float kSum = squared(kNear) + squared(kFar);
    constexpr float kProduct = squared(kNear) * squared(kFar);
    const Vector near_even = scaled(-squared(kFar), d(2), d(4));
    const Vector near_odd = scaled(-squared(kFar), d(1), d(3));
    const Vector far_even = scaled(-squared(kNear), d(2), d(4));
    const Vector far_odd = scaled(-squared(kNear), d(1), d(3));
    to[0] = scaled(kProduct, d(0), scaled(-kSum, d(2), d(4)));
    to[1] = scaled(kNear, near_odd, near_even);
    to[2] = scaled(-kNear, near_odd, near_even);
    to[3] = scaled(kFar, far_odd, far_even);
    to[4] = scaled(-kFar, far_odd, far_even);
    to[5] = scaled(kProduct, d(1), scaled(-kSum, d(3), d(5)));
  }
  HWY_INLINE static void write(const Vector* from, Vector (&to)[4]) {
    const auto m = [&](int index) HWY_ATTR { return from[index]; };
    const auto by = [](float factor, Vector x)
                        HWY_ATTR { return hn::Mul(hn::Set(Tag(), factor), x); };
    const Vector near_sum = hn::Add(m(1), m(2));
    const Vector near_difference = hn::Sub(m(1), m(2));
    const Vector far_sum = hn::Add(m(3), m(4));
    const Vector far_difference = hn::Sub(m(3), m(4));
    to[0] = hn::Add(hn::Add(m(0), near_sum), far_sum);
    to[1] = scaled(kFar, far_difference, by(kNear, near_difference));
    to[2] = scaled(squared(kFar), far_sum, by(squared(kNear), near_sum));
    to[3] = scaled(cubed(kFar), far_difference, scaled(cubed(kNear), near_difference, m(5)));
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

// The range of the `size` indices from `first` on that are within [0, length).
struct Range {
  int begin = 0;
  int end = 0;
};
HWY_INLINE Range inside(int64_t first, int64_t length, int size) {
  return {static_cast<int>(std::clamp<int64_t>(-first, 0, size)),
          static_cast<int>(std::clamp<int64_t>(length - first, 0, size))};
}

HWY_INLINE int count(const Range& range) { return range.end - range.begin; }

HWY_INLINE bool is_whole(const Range& range, int size) { return count(range) == size; }

// Fetches the lines of the next tile of the same row, whose first `count` columns begin at `from`.
template <int kForWriting, int kRows, int kColumns>
HWY_INLINE void fetch(const WinogradFeatureMap& map, const float* from) {
  for (int row = 0; row < kRows; ++row, from += map.columns * map.pixel) {
    for (int column = 0; column < kColumns; ++column) {
      __builtin_prefetch(from + column * map.pixel, kForWriting, 3);
    }
  }
}

// The pixels of a tile in blocks of 2 x 2. Each output reads all of at least one block: output i of
// a row or column reads pixels i to i + 2, so block (i + 1) / 2.
template <int kTile>
constexpr int kBlocks = (kTile + static_cast<int>(kTaps) - 1) / 2;

// The sum of squares of each block, in each lane.
template <int kTile>
struct Squares {
  Vector of[kBlocks<kTile> * kBlocks<kTile>];
};

// Transforms the pixels of 16 channels, or as many as a vector has, and adds their squares.
template <int kTile, class Load>
HWY_INLINE void transform_pixels(int64_t plane, const Load& load, float* to,
                                 Squares<kTile>& squares) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  Vector half[kSize * kSize];
  Vector made[kSize];
  for (int column = 0; column < kSize; ++column) {
    Vector pixels[kSize];
    for (int row = 0; row < kSize; ++row) pixels[row] = load(row, column);
    for (int row = 0; row < kSize; ++row) {
      Vector& sum = squares.of[row / 2 * kBlocks<kTile> + column / 2];
      sum = hn::MulAdd(pixels[row], pixels[row], sum);
    }
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

// Squares of these sums neither overflow nor lose digits.
constexpr float kMinSquares = 1e-30F;
constexpr float kMaxSquares = 1e36F;

// The pixels of a tile that lie inside of the image.
struct InsidePixels {
  Range rows;
  Range columns;

  HWY_INLINE int count_in_block(int row, int column) const {
    const auto overlap = [](const Range& range, int block) {
      return std::clamp(range.end - 2 * block, 0, 2) - std::clamp(range.begin - 2 * block, 0, 2);
    };
    return overlap(rows, row) * overlap(columns, column);
  }
};

// The sums over the lanes of each of kCount vectors.
template <int kCount>
HWY_INLINE void sum_lanes(const Vector (&vectors)[kCount], float* sums) {
  const Tag d;
  Vector merged[kCount];
  for (int index = 0; index < kCount; ++index) merged[index] = vectors[index];
  int count = kCount;
#if HWY_TARGET != HWY_SCALAR
  // Adds neighbours of two vectors into one, until each lane is the sum of one vector.
  for (int64_t lanes = lane_count(); lanes > 1; lanes /= 2) {
    for (int index = 0; index < count; index += 2) {
      const Vector low = merged[index];
      const Vector high = merged[std::min(index + 1, count - 1)];
      merged[index / 2] = hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
    }
    count = (count + 1) / 2;
  }
#endif
  for (int index = 0; index < count; ++index) {
    hn::StoreU(merged[index], d, sums + index * lane_count());
  }
}

// Whether the tile may be transformed; see kMaxUnevenness.
template <int kTile>
HWY_INLINE bool is_even(const WinogradTile& tile, const InsidePixels& inside,
                        const Squares<kTile>& squares) {
  constexpr int kSide = kBlocks<kTile>;
  constexpr int kCount = kSide * kSide;
  float sums[kCount + hn::MaxLanes(Tag())];
  sum_lanes(squares.of, sums);
  float total = 0;
  float least = sums[0];
  for (int block = 0; block < kCount; ++block) {
    total += sums[block];
    least = std::min(least, sums[block]);
  }
  // NaN is not between them.
  if (!(total >= kMinSquares && total <= kMaxSquares)) return false;
  const int pixels_inside = count(inside.rows) * count(inside.columns);
  if (pixels_inside == 4 * kCount && tile.output_rows == kTile && tile.output_columns == kTile) {
    return total <= kMaxUnevenness * kCount * least;
  }
  const float mean = total / static_cast<float>(pixels_inside);
  for (int row = 0; row <= tile.output_rows / 2; ++row) {
    for (int column = 0; column <= tile.output_columns / 2; ++column) {
      // A block outside of the image has a sum of 0.
      const int pixels = std::max(inside.count_in_block(row, column), 1);
      if (mean * static_cast<float>(pixels) > kMaxUnevenness * sums[row * kSide + column]) {
        return false;
      }
    }
  }
  return true;
}

// Copies the pixels, and zeros for those outside. Returns whether one of them is not zero.
template <int kTile>
HWY_NOINLINE bool copy_pixels(const WinogradFeatureMap& map, const WinogradTile& tile,
                              const InsidePixels& inside, const float* from, float* to) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  const Tag d;
  auto is_zero = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column, to += tile.plane) {
      const bool is_inside = row >= inside.rows.begin && row < inside.rows.end &&
                             column >= inside.columns.begin && column < inside.columns.end;
      const int64_t first = ((tile.row + row) * map.columns + tile.column + column) * map.pixel;
      for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
        const Vector pixel =
            is_inside ? hn::LoadU(d, from + offset_of(map, channel) + first) : hn::Zero(d);
        is_zero = hn::And(is_zero, hn::Eq(pixel, hn::Zero(d)));
        hn::StoreU(pixel, d, to + channel);
      }
    }
  }
  return !hn::AllTrue(d, is_zero);
}

template <int kTile>
bool read(const WinogradFeatureMap& map, const WinogradTile& tile, const float* from, float* to) {
  constexpr int kSize = kTile + static_cast<int>(kTaps) - 1;
  const Tag d;
  const InsidePixels pixels_inside = {inside(tile.row, map.rows, kSize),
                                      inside(tile.column, map.columns, kSize)};
  const auto& [rows, columns] = pixels_inside;
  const int64_t line = map.columns * map.pixel;
  const int64_t first = tile.row * line + tile.column * map.pixel;
  Squares<kTile> squares;
  for (Vector& sum : squares.of) sum = hn::Zero(d);
  if (is_whole(rows, kSize) && is_whole(columns, kSize)) {
    for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
      const float* pixels = from + offset_of(map, channel) + first;
      fetch<0, kSize, kTile>(map, pixels + kSize * map.pixel);
      transform_pixels<kTile>(
          tile.plane,
          [&](int row, int column)
              HWY_ATTR { return hn::LoadU(d, pixels + row * line + column * map.pixel); },
          to + channel, squares);
    }
  } else {
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
          to + channel, squares);
    }
  }
  if (is_even<kTile>(tile, pixels_inside, squares)) return true;
  // Zeros are their own transform.
  return !copy_pixels<kTile>(map, tile, pixels_inside, from, to);
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

template <int kTile>
void write_outputs(const WinogradFeatureMap& map, const WinogradTile& tile,
                   const WinogradEpilogue& epilogue, const float* from, float* to) {
  const Tag d;
  const Range rows = inside(tile.row, map.rows, kTile);
  const Range columns = inside(tile.column, map.columns, kTile);
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int column = columns.begin; column < columns.end; ++column) {
      const int64_t first = ((tile.row + row) * map.columns + tile.column + column) * map.pixel;
      const float* sums = from + (row * kTile + column) * tile.plane;
      for (int64_t channel = 0; channel < tile.channels; channel += lane_count()) {
        const int64_t position = first + offset_of(map, channel);
        Vector result = hn::LoadU(d, sums + channel);
        if (epilogue.bias != nullptr) {
          result = hn::Add(result, hn::LoadU(d, epilogue.bias + channel));
        }
        if (epilogue.addend != nullptr) {
          result = hn::Add(result, hn::LoadU(d, epilogue.addend + position));
        }
        if (epilogue.has_relu) {
          result = hn::IfThenZeroElse(hn::Lt(result, hn::Zero(d)), result);
        }
        hn::StoreU(result, d, to + position);
      }
    }
  }
}

template <int kTile>
WinogradLoops loops_of() {
  return {read<kTile>, write<kTile>, write_outputs<kTile>};
}

WinogradLoops loops_of_four() { return loops_of<4>(); }
WinogradLoops loops_of_two() { return loops_of<2>(); }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {

HWY_EXPORT(loops_of_four);
HWY_EXPORT(loops_of_two);

constexpr double kNear = 11.0 / 16;
constexpr double kFar = 3.0 / 2;
constexpr double kNearSquare = kNear * kNear;
constexpr double kFarSquare = kFar * kFar;
constexpr double kOfNear = 1 / (2 * kNearSquare * (kNearSquare - kFarSquare));
constexpr double kOfFar = 1 / (2 * kFarSquare * (kFarSquare - kNearSquare));
constexpr double kFourWeights[6][kTaps] = {{1 / (kNearSquare * kFarSquare), 0, 0},
                                           {kOfNear, kNear* kOfNear, kNearSquare* kOfNear},
                                           {kOfNear, -kNear* kOfNear, kNearSquare* kOfNear},
                                           {kOfFar, kFar* kOfFar, kFarSquare* kOfFar},
                                           {kOfFar, -kFar* kOfFar, kFarSquare* kOfFar},
                                           {0, 0, 1}};
constexpr double kTwoWeights[4][kTaps] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

// Zero times an infinity is none of the weight's products.
double product(double factor, double weight) { return factor == 0 ? 0 : factor * weight; }

// factors * weights * factors^T, in double, because weights are transformed only once.
template <int kSize>
void transform_by(const double (&factors)[kSize][kTaps], const float* from, float* to) {
  double half[kSize][kTaps] = {};
  for (int row = 0; row < kSize; ++row) {
    for (int tap = 0; tap < kTaps; ++tap) {
      for (int column = 0; column < kTaps; ++column) {
        half[row][column] +=
            product(factors[row][tap], static_cast<double>(from[tap * kTaps + column]));
      }
    }
  }
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      double sum = 0;
      for (int tap = 0; tap < kTaps; ++tap) sum += product(factors[column][tap], half[row][tap]);
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
