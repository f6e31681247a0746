// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "pooling/pooling_kernels.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pooling/pooling_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

struct Max {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  static constexpr bool kIsMax = true;
  // Comparisons with NaN are false, so a NaN on either side stays.
  static HWY_INLINE Vector join(Vector left, Vector right) {
    return hn::IfThenElse(hn::Or(hn::Gt(right, left), hn::IsNaN(right)), right, left);
  }
};

struct Sum {
  static constexpr float kStart = 0;
  static constexpr bool kIsMax = false;
  static HWY_INLINE Vector join(Vector left, Vector right) { return hn::Add(left, right); }
};

// Joins terms in blocks of blocks, so that the rounding errors of a long sum stay small.
template <class Op>
class Blocks {
 public:
  Blocks() {
    for (Vector& level : levels_) level = hn::Set(Tag(), Op::kStart);
  }

  HWY_INLINE void add(Vector term) {
    levels_[0] = Op::join(levels_[0], term);
    ++count_;
    for (int level = 1; level < kLevels; ++level) {
      if (count_ % (int64_t{1} << (level * kBits)) != 0) return;
      levels_[level] = Op::join(levels_[level], levels_[level - 1]);
      levels_[level - 1] = hn::Set(Tag(), Op::kStart);
    }
  }
  HWY_INLINE Vector result() const {
    Vector total = levels_[0];
    for (int level = 1; level < kLevels; ++level) total = Op::join(total, levels_[level]);
    return total;
  }

 private:
  // Blocks of four: of four equal terms, only the last two additions round.
  static constexpr int kLevels = 10;
  static constexpr int kBits = 2;
  Vector levels_[kLevels];
  int64_t count_ = 0;
};

// The largest number of terms that are joined one after the other: equal terms round in the same
// direction, and 36 of them exceed the error bound of sums.
constexpr int64_t kMaxChain = 32;
// The limit if rows are joined first and then the columns of their sums: 14 of one and 15 of the
// other exceed the bound.
constexpr int64_t kMaxChainOfTwo = 12;

// The taps of output `index` that read inside the row.
struct Taps {
  int64_t begin = 0;
  int64_t end = 0;
};

HWY_INLINE Taps taps_of(const PoolRow& row, int64_t index) {
  const int64_t start = index * row.stride - row.pad_begin;
  // Most windows lie inside, which is found out without a division.
  if (start >= 0 && start + (row.kernel - 1) * row.dilation < row.columns) return {0, row.kernel};
  const int64_t before = start < 0 ? (row.dilation - 1 - start) / row.dilation : 0;
  const int64_t room = row.columns - start;
  const int64_t inside = room <= 0 ? 0 : (room + row.dilation - 1) / row.dilation;
  const int64_t end = std::min(row.kernel, inside);
  return {std::min(before, end), end};
}

// --- Pixels of several elements ------------------------------------------------------------------

// Calls visit(address) for each element of a window whose elements begin at `first`.
template <class Visit>
HWY_INLINE void for_taps(const PoolRow& row, const Taps& taps, int64_t first, const Visit& visit) {
  for (int64_t plane = 0; plane < row.planes; ++plane) {
    for (int64_t line = 0; line < row.rows; ++line) {
      const float* from = row.from + plane * row.plane_step + line * row.row_step + first;
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        visit(from + tap * row.dilation * row.lanes);
      }
    }
  }
}

// Pools kVectors vectors that are `distance` apart, of one output pixel or of neighbouring pixels
// with the same taps; `load` reads one of them.
template <class Op, int kVectors, class Load>
HWY_INLINE void pool_pixel(const PoolRow& row, const Taps& taps, int64_t first, int64_t distance,
                           const Load& load, Vector (&results)[kVectors]) {
  const int64_t step = row.dilation * row.lanes;
  if (!Op::kIsMax && row.planes * row.rows * (taps.end - taps.begin) > kMaxChain) {
    for (int vector = 0; vector < kVectors; ++vector) {
      Blocks<Op> blocks;
      for_taps(row, taps, first + vector * distance,
               [&](const float* from) HWY_ATTR { blocks.add(load(from)); });
      results[vector] = blocks.result();
    }
    return;
  }
  for (Vector& result : results) result = hn::Set(Tag(), Op::kStart);
  for (int64_t plane = 0; plane < row.planes; ++plane) {
    for (int64_t line = 0; line < row.rows; ++line) {
      const float* from = row.from + plane * row.plane_step + line * row.row_step + first;
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        for (int vector = 0; vector < kVectors; ++vector) {
          results[vector] = Op::join(results[vector], load(from + tap * step + vector * distance));
        }
      }
    }
  }
}

// Pools kPixels neighbouring output pixels with complete windows, if a pixel is at most one vector.
template <class Op, int kPixels>
HWY_INLINE void pool_neighbours(const PoolRow& row, int64_t output, float* to) {
  const Tag d;
  const bool is_whole = row.lanes == lane_count();
  const int64_t start = (output * row.stride - row.pad_begin) * row.lanes;
  Vector results[kPixels];
  const Taps taps = {0, row.kernel};
  const int64_t distance = row.stride * row.lanes;
  if (is_whole) {
    pool_pixel<Op, kPixels>(
        row, taps, start, distance,
        [&](const float* source) HWY_ATTR { return hn::LoadU(d, source); }, results);
  } else {
    pool_pixel<Op, kPixels>(
        row, taps, start, distance,
        [&](const float* source) HWY_ATTR { return load_some(d, source, row.lanes); }, results);
  }
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    Vector result = results[pixel];
    if constexpr (!Op::kIsMax) {
      result = hn::Mul(result, hn::Set(d, row.factors[output + pixel] * row.factor));
    }
    store_some(result, d, to + (output + pixel) * row.lanes, row.lanes);
  }
}

template <class Op>
void wide(const PoolRow& row, float* to) {
  constexpr int kVectors = 4;
  const Tag d;
  const int64_t lanes = lane_count();
  constexpr int kPixels = 4;
  const int64_t reach = (row.kernel - 1) * row.dilation + (kPixels - 1) * row.stride;
  for (int64_t output = 0; output < row.outputs; ++output) {
    const int64_t first = output * row.stride - row.pad_begin;
    if (row.lanes <= lanes && first >= 0 && first + reach < row.columns &&
        output + kPixels <= row.outputs) {
      pool_neighbours<Op, kPixels>(row, output, to);
      output += kPixels - 1;
      continue;
    }
    const Taps taps = taps_of(row, output);
    const int64_t start = first * row.lanes;
    const float number = Op::kIsMax ? 1 : row.factors[output] * row.factor;
    const Vector factor = hn::Set(d, number);
    const auto finished = [&](Vector x) HWY_ATTR { return Op::kIsMax ? x : hn::Mul(x, factor); };
    float* target = to + output * row.lanes;
    const auto whole = [&](const float* source) HWY_ATTR { return hn::LoadU(d, source); };
    int64_t lane = 0;
    for (; lane + kVectors * lanes <= row.lanes; lane += kVectors * lanes) {
      Vector results[kVectors];
      pool_pixel<Op, kVectors>(row, taps, start + lane, lanes, whole, results);
      for (int vector = 0; vector < kVectors; ++vector) {
        hn::StoreU(finished(results[vector]), d, target + lane + vector * lanes);
      }
    }
    for (; lane + lanes <= row.lanes; lane += lanes) {
      Vector results[1];
      pool_pixel<Op, 1>(row, taps, start + lane, lanes, whole, results);
      hn::StoreU(finished(results[0]), d, target + lane);
    }
    if (lane < row.lanes) {
      const int64_t rest = row.lanes - lane;
      Vector results[1];
      pool_pixel<Op, 1>(
          row, taps, start + lane, lanes,
          [&](const float* source) HWY_ATTR { return load_some(d, source, rest); }, results);
      store_some(finished(results[0]), d, target + lane, rest);
    }
  }
}

// --- Pixels of one element -----------------------------------------------------------------------

// The columns, with padding, that are pooled vertically at a time, and the elements behind them
// that may be read.
constexpr int64_t kLine = 2048;
constexpr int64_t kSlack = 64;

// Pools vertically: combines the rows to one, for columns [begin, end) of the padded row.
template <class Op>
HWY_INLINE void join_rows(const PoolRow& row, int64_t begin, int64_t end, float* line) {
  const Tag d;
  const int64_t first = std::clamp<int64_t>(row.pad_begin, begin, end);
  const int64_t last = std::clamp<int64_t>(row.pad_begin + row.columns, first, end);
  std::fill(line, line + (first - begin), Op::kStart);
  std::fill(line + (last - begin), line + (end - begin) + kSlack, Op::kStart);
  const float* from = row.from + first - row.pad_begin;
  float* to = line + (first - begin);
  const auto join = [&](const auto& load) HWY_ATTR {
    const auto at = [&](int64_t plane, int64_t each) HWY_ATTR {
      return load(from + plane * row.plane_step + each * row.row_step);
    };
    if (!Op::kIsMax && row.planes * row.rows > kMaxChainOfTwo) {
      Blocks<Op> blocks;
      for (int64_t plane = 0; plane < row.planes; ++plane) {
        for (int64_t each = 0; each < row.rows; ++each) blocks.add(at(plane, each));
      }
      return blocks.result();
    }
    Vector result = hn::Set(d, Op::kStart);
    for (int64_t plane = 0; plane < row.planes; ++plane) {
      for (int64_t each = 0; each < row.rows; ++each) result = Op::join(result, at(plane, each));
    }
    return result;
  };
  for_vectors(
      d, last - first,
      [&](int64_t index) HWY_ATTR {
        hn::StoreU(join([&](const float* source) HWY_ATTR { return hn::LoadU(d, source + index); }),
                   d, to + index);
      },
      [&](int64_t index, int64_t rest) HWY_ATTR {
        store_some(
            join([&](const float* source) HWY_ATTR { return load_some(d, source + index, rest); }),
            d, to + index, rest);
      });
}

// Loads every stride-th element. May read up to kSlack elements behind the last one.
HWY_INLINE Vector load_spread(const float* from, int64_t stride) {
  const Tag d;
  if (stride == 1) return hn::LoadU(d, from);
  if (stride == 2) {
    Vector even;
    Vector odd;
    hn::LoadInterleaved2(d, from, even, odd);
    return even;
  }
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (int64_t lane = 0; lane < lane_count(); ++lane) lanes[lane] = from[lane * stride];
  return hn::Load(d, lanes);
}

// Pools a single output, if windows are wider than the buffer.
template <class Op>
float pool_one(const PoolRow& row, int64_t output) {
  Blocks<Op> blocks;
  for_taps(row, taps_of(row, output), output * row.stride - row.pad_begin,
           [&](const float* from) HWY_ATTR { blocks.add(hn::Set(Tag(), *from)); });
  return hn::GetLane(blocks.result());
}

// Pools horizontally: outputs [begin, end), whose windows begin at multiples of the stride.
template <class Op>
HWY_INLINE void join_columns(const PoolRow& row, const float* line, int64_t begin, int64_t end,
                             float* to) {
  const Tag d;
  const Vector factor = hn::Set(d, row.factor);
  const auto join = [&](int64_t index) HWY_ATTR {
    const auto at = [&](int64_t tap) HWY_ATTR {
      return load_spread(line + index * row.stride + tap * row.dilation, row.stride);
    };
    if (!Op::kIsMax && row.kernel > kMaxChainOfTwo) {
      Blocks<Op> blocks;
      for (int64_t tap = 0; tap < row.kernel; ++tap) blocks.add(at(tap));
      return blocks.result();
    }
    Vector result = hn::Set(d, Op::kStart);
    for (int64_t tap = 0; tap < row.kernel; ++tap) result = Op::join(result, at(tap));
    return result;
  };
  for_vectors(
      d, end - begin,
      [&](int64_t index) HWY_ATTR {
        Vector result = join(index);
        if constexpr (!Op::kIsMax) {
          result = hn::Mul(result, hn::Mul(hn::LoadU(d, row.factors + begin + index), factor));
        }
        hn::StoreU(result, d, to + begin + index);
      },
      [&](int64_t index, int64_t rest) HWY_ATTR {
        // The slack behind the line has room for a vector with stride 1 or 2.
        Vector result = hn::Set(d, Op::kStart);
        if (row.stride <= 2) {
          result = join(index);
        } else {
          HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
          Blocks<Op> blocks;
          for (int64_t tap = 0; tap < row.kernel; ++tap) {
            for (int64_t lane = 0; lane < rest; ++lane) {
              lanes[lane] = line[(index + lane) * row.stride + tap * row.dilation];
            }
            blocks.add(hn::Load(d, lanes));
          }
          result = blocks.result();
        }
        if constexpr (!Op::kIsMax) {
          const Vector factors = load_some(d, row.factors + begin + index, rest);
          result = hn::Mul(result, hn::Mul(factors, factor));
        }
        store_some(result, d, to + begin + index, rest);
      });
}

template <class Op>
void single(const PoolRow& row, float* to) {
  HWY_ALIGN float line[kLine + kSlack];
  const int64_t extent = (row.kernel - 1) * row.dilation + 1;
  if (extent > kLine || row.stride > kLine) {
    for (int64_t output = 0; output < row.outputs; ++output) {
      const float number = pool_one<Op>(row, output);
      to[output] = Op::kIsMax ? number : number * row.factors[output] * row.factor;
    }
    return;
  }
  const int64_t outputs = (kLine - extent) / row.stride + 1;
  for (int64_t begin = 0; begin < row.outputs; begin += outputs) {
    const int64_t end = std::min(row.outputs, begin + outputs);
    join_rows<Op>(row, begin * row.stride, (end - 1) * row.stride + extent, line);
    join_columns<Op>(row, line, begin, end, to);
  }
}

PoolLoops loops_of(bool is_max) {
  if (is_max) return {single<Max>, wide<Max>};
  return {single<Sum>, wide<Sum>};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loops_of);

PoolLoops find_pool_loops(bool is_max) { return HWY_DYNAMIC_DISPATCH(loops_of)(is_max); }

}  // namespace tessera::native

#endif  // HWY_ONCE
