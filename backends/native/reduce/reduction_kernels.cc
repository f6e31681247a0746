// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "reduce/reduction_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/reduction_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/exponential.h"
#include "base/partial_vector.h"
#include "base/row_totals.h"
#include "base/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Elements that are summed in float32 before the sum is added to a double: few enough for the
// digits of float32, also of equal elements, whose additions round in one direction. Rows have four
// sums for each lane.
constexpr int64_t kChunkRows = 64;
constexpr int64_t kChunkSteps = 16;

// --- The accumulated functions: of vectors (map, join, total), of numbers (the others) -----------

struct Sum {
  static constexpr double kStart = 0;
  template <class D, class V>
  static HWY_INLINE V map(D /*d*/, V x, V /*shift*/) {
    return x;
  }
  template <class V>
  static HWY_INLINE V join(V left, V right) {
    return hn::Add(left, right);
  }
  template <class D, class V>
  static HWY_INLINE float total(D d, V x) {
    return hn::GetLane(hn::SumOfLanes(d, x));
  }
  // Whether the sum in float32 is accurate; else it is computed again in double.
  template <class D, class V>
  static HWY_INLINE auto is_sound(D d, V x) {
    return hn::Lt(hn::Abs(x), hn::Inf(d));
  }
  static double map_unary(float x, float /*shift*/) { return x; }
  static double join_one(double left, double right) { return left + right; }
};

struct AbsoluteSum : Sum {
  template <class D, class V>
  static HWY_INLINE V map(D /*d*/, V x, V /*shift*/) {
    return hn::Abs(x);
  }
  static double map_unary(float x, float /*shift*/) { return std::abs(double{x}); }
};

struct SquareSum : Sum {
  template <class D, class V>
  static HWY_INLINE V map(D /*d*/, V x, V /*shift*/) {
    return hn::Mul(x, x);
  }
  // Squares below the range of float32 would be lost.
  template <class D, class V>
  static HWY_INLINE auto is_sound(D d, V x) {
    return hn::And(hn::Lt(x, hn::Inf(d)), hn::Gt(x, hn::Set(d, 1e-20F)));
  }
  static double map_unary(float x, float /*shift*/) { return double{x} * double{x}; }
};

struct ExponentialSum : Sum {
  template <class D, class V>
  static HWY_INLINE V map(D d, V x, V shift) {
    return exponential(d, hn::Sub(x, shift));
  }
  static double map_unary(float x, float shift) { return std::exp(double{x} - double{shift}); }
};

template <bool kIsMax>
struct Extreme {
  static constexpr double kStart =
      kIsMax ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  template <class D, class V>
  static HWY_INLINE V map(D /*d*/, V x, V /*shift*/) {
    return x;
  }
  // Comparisons with NaN are false, so a NaN on either side stays.
  template <class V>
  static HWY_INLINE V join(V left, V right) {
    const auto is_better = kIsMax ? hn::Gt(right, left) : hn::Lt(right, left);
    return hn::IfThenElse(hn::Or(is_better, hn::IsNaN(right)), right, left);
  }
  template <class D, class V>
  static HWY_INLINE float total(D d, V x) {
    if (!hn::AllFalse(d, hn::IsNaN(x))) return std::numeric_limits<float>::quiet_NaN();
    return hn::GetLane(kIsMax ? hn::MaxOfLanes(d, x) : hn::MinOfLanes(d, x));
  }
  template <class D, class V>
  static HWY_INLINE auto is_sound(D d, V /*x*/) {
    return hn::FirstN(d, hn::Lanes(d));
  }
  static double map_unary(float x, float /*shift*/) { return x; }
  static double join_one(double left, double right) {
    if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<double>::quiet_NaN();
    return kIsMax ? std::max(left, right) : std::min(left, right);
  }
};

// --- Loops ---------------------------------------------------------------------------------------

// Accumulates `count` elements, `stride` apart, in double.
template <class Op>
double accumulate_wide(const float* from, int64_t count, int64_t stride, float shift) {
  double accumulator = Op::kStart;
  for (int64_t index = 0; index < count; ++index) {
    accumulator = Op::join_one(accumulator, Op::map_unary(from[index * stride], shift));
  }
  return accumulator;
}

// Accumulates a chunk of contiguous elements in the lanes of a vector.
template <class Op>
HWY_INLINE hn::Vec<hn::ScalableTag<float>> accumulate_lanes(const float* HWY_RESTRICT from,
                                                            int64_t count, float shift_number) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, shift_number);
  const auto start = hn::Set(d, static_cast<float>(Op::kStart));
  const auto mapped = [&](int64_t index)
                          HWY_ATTR { return Op::map(d, hn::LoadU(d, from + index), shift); };
  auto sum = start;
  int64_t index = 0;
  if (count >= 4 * lanes) {
    auto second = start;
    auto third = start;
    auto fourth = start;
    for (; index + 4 * lanes <= count; index += 4 * lanes) {
      sum = Op::join(sum, mapped(index));
      second = Op::join(second, mapped(index + lanes));
      third = Op::join(third, mapped(index + 2 * lanes));
      fourth = Op::join(fourth, mapped(index + 3 * lanes));
    }
    sum = Op::join(Op::join(sum, second), Op::join(third, fourth));
  }
  for (; index + lanes <= count; index += lanes) sum = Op::join(sum, mapped(index));
  if (index < count) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(count - index));
    const auto last = Op::map(d, load_some(d, from + index, count - index), shift);
    sum = Op::join(sum, hn::IfThenElse(mask, last, start));
  }
  return sum;
}

template <class Op>
HWY_INLINE double accumulate_chunk(const float* HWY_RESTRICT from, int64_t count,
                                   float shift_number) {
  const hn::ScalableTag<float> d;
  const float total = Op::total(d, accumulate_lanes<Op>(from, count, shift_number));
  const hn::CappedTag<float, 1> one;
  if (hn::AllTrue(one, Op::is_sound(one, hn::Set(one, total)))) return total;
  return accumulate_wide<Op>(from, count, 1, shift_number);
}

// The longest rows that are processed several at once: longer ones are as fast one after the other.
constexpr int64_t kMaxShortRow = 512;

// Accumulates kRowsAtOnce rows of one chunk each.
template <class Op>
HWY_INLINE void some_rows(const float* from, int64_t stride, int64_t length, const float* shifts,
                          double* accumulators) {
  const hn::ScalableTag<float> d;
  const RowTag few;
  const auto join = [](auto left, auto right) HWY_ATTR { return Op::join(left, right); };
  HWY_ALIGN float lanes[kRowsAtOnce * kRowsAtOnce];
  HWY_ALIGN float totals[kRowsAtOnce];
  for (int64_t row = 0; row < kRowsAtOnce; ++row) {
    const auto sums =
        accumulate_lanes<Op>(from + row * stride, length, shifts == nullptr ? 0 : shifts[row]);
    hn::Store(folded(d, sums, join), few, lanes + row * kRowsAtOnce);
  }
  const RowVector sums = row_totals(lanes, join);
  hn::Store(sums, few, totals);
  const bool are_sound = hn::AllTrue(few, Op::is_sound(few, sums));
  for (int64_t row = 0; row < kRowsAtOnce; ++row) {
    const double total = are_sound ? double{totals[row]}
                                   : accumulate_chunk<Op>(from + row * stride, length,
                                                          shifts == nullptr ? 0 : shifts[row]);
    accumulators[row] = Op::join_one(accumulators[row], total);
  }
}

template <class Op>
void rows(const float* from, int64_t results, int64_t stride, int64_t length, const float* shifts,
          double* accumulators) {
  const hn::ScalableTag<float> d;
  const int64_t chunk = 4 * kChunkSteps * static_cast<int64_t>(hn::Lanes(d));
  int64_t result = 0;
  if (kRowsAtOnce > 1 && length <= std::min(kMaxShortRow, chunk)) {
    for (; result + kRowsAtOnce <= results; result += kRowsAtOnce) {
      some_rows<Op>(from + result * stride, stride, length,
                    shifts == nullptr ? nullptr : shifts + result, accumulators + result);
    }
  }
  for (; result < results; ++result) {
    const float* row = from + result * stride;
    const float shift = shifts == nullptr ? 0 : shifts[result];
    double accumulator = accumulators[result];
    for (int64_t done = 0; done < length; done += chunk) {
      accumulator = Op::join_one(
          accumulator, accumulate_chunk<Op>(row + done, std::min(chunk, length - done), shift));
    }
    accumulators[result] = accumulator;
  }
}

// Adds kRows elements to sums[c], for c in [0, width).
template <class Op, int kRows>
HWY_INLINE void add_rows(const float* HWY_RESTRICT from, int64_t stride, int64_t width,
                         const float* shifts, float* HWY_RESTRICT sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The kRows elements of each column are combined in pairs; `mask` selects those that count.
  const auto step = [&](int64_t column, auto load, auto mask) HWY_ATTR {
    const auto shift = shifts == nullptr ? hn::Zero(d) : hn::LoadU(d, shifts + column);
    const auto at = [&](int64_t row)
                        HWY_ATTR { return Op::map(d, load(from + row * stride + column), shift); };
    auto joined = at(0);
    if constexpr (kRows == 8) {
      const auto first = Op::join(Op::join(joined, at(1)), Op::join(at(2), at(3)));
      const auto second = Op::join(Op::join(at(4), at(5)), Op::join(at(6), at(7)));
      joined = Op::join(first, second);
    }
    hn::Store(Op::join(hn::Load(d, sums + column), mask(joined)), d, sums + column);
  };
  int64_t column = 0;
  for (; column + lanes <= width; column += lanes) {
    step(
        column, [&](const float* source) HWY_ATTR { return hn::LoadU(d, source); },
        [](auto joined) HWY_ATTR { return joined; });
  }
  if (column < width) {
    const auto used = hn::FirstN(d, static_cast<size_t>(width - column));
    const auto start = hn::Set(d, static_cast<float>(Op::kStart));
    step(
        column, [&](const float* source) HWY_ATTR { return load_some(d, source, width - column); },
        [&](auto joined) HWY_ATTR { return hn::IfThenElse(used, joined, start); });
  }
}

template <class Op>
void columns(const float* from, int64_t rows, int64_t stride, int64_t width, const float* shifts,
             double* accumulators) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float sums[kMaxColumns];
  const int64_t room = (width + kColumnUnit - 1) / kColumnUnit * kColumnUnit;
  for (int64_t done = 0; done < rows; done += kChunkRows) {
    const float* chunk = from + done * stride;
    const int64_t count = std::min(kChunkRows, rows - done);
    std::fill(sums, sums + room, static_cast<float>(Op::kStart));
    int64_t row = 0;
    for (; row + 8 <= count; row += 8) {
      add_rows<Op, 8>(chunk + row * stride, stride, width, shifts, sums);
    }
    for (; row < count; ++row) {
      add_rows<Op, 1>(chunk + row * stride, stride, width, shifts, sums);
    }
    for (int64_t column = 0; column < width; column += lanes) {
      const auto sum = hn::Load(half, sums + column);
      if (!hn::AllTrue(half, Op::is_sound(half, sum))) {
        const int64_t end = std::min(column + lanes, width);
        for (int64_t each = column; each < end; ++each) {
          const double wide = accumulate_wide<Op>(chunk + each, count, stride,
                                                  shifts == nullptr ? 0 : shifts[each]);
          accumulators[each] = Op::join_one(accumulators[each], wide);
        }
        continue;
      }
      const auto accumulator = hn::LoadU(d, accumulators + column);
      hn::StoreU(Op::join(accumulator, hn::PromoteTo(d, sum)), d, accumulators + column);
    }
  }
}

template <class Op>
void join(const double* others, int64_t count, double* accumulators) {
  for (int64_t index = 0; index < count; ++index) {
    accumulators[index] = Op::join_one(accumulators[index], others[index]);
  }
}

// Products may leave the range of float32 and come back, so they are computed in double throughout.
void join_products(const double* others, int64_t count, double* accumulators) {
  for (int64_t index = 0; index < count; ++index) accumulators[index] *= others[index];
}

void product_rows(const float* from, int64_t results, int64_t stride, int64_t length,
                  const float* /*shifts*/, double* accumulators) {
  for (int64_t result = 0; result < results; ++result) {
    const float* row = from + result * stride;
    for (int64_t index = 0; index < length; ++index) accumulators[result] *= row[index];
  }
}

void product_columns(const float* from, int64_t rows, int64_t stride, int64_t width,
                     const float* /*shifts*/, double* accumulators) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* numbers = from + row * stride;
    for (int64_t column = 0; column < width; ++column) accumulators[column] *= numbers[column];
  }
}

template <class Op>
ReductionLoops loops_of_op() {
  return {Op::kStart, rows<Op>, columns<Op>, join<Op>};
}

ReductionLoops loops_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return loops_of_op<Sum>();
    case ReduceOp::AbsoluteSum:
      return loops_of_op<AbsoluteSum>();
    case ReduceOp::SquareSum:
      return loops_of_op<SquareSum>();
    case ReduceOp::ExponentialSum:
      return loops_of_op<ExponentialSum>();
    case ReduceOp::Product:
      return {1, product_rows, product_columns, join_products};
    case ReduceOp::Max:
      return loops_of_op<Extreme<true>>();
    case ReduceOp::Min:
      return loops_of_op<Extreme<false>>();
  }
  return {};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loops_of);

ReductionLoops find_reduction_loops(ReduceOp op) { return HWY_DYNAMIC_DISPATCH(loops_of)(op); }

}  // namespace tessera::native

#endif  // HWY_ONCE
