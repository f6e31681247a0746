// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "normalization/normalization_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normalization/normalization_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/partial_vector.h"
#include "base/row_totals.h"
#include "base/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Vectors that each of four sums adds up before it is added to a double.
constexpr int64_t kChunkSteps = 32;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// The sums of function(x) over a chunk, in the lanes of a vector.
template <class Function>
HWY_INLINE Vector lane_sums(const float* HWY_RESTRICT from, int64_t count,
                            const Function& function) {
  const Tag d;
  const int64_t lanes = lane_count();
  const auto at = [&](int64_t index) HWY_ATTR { return function(hn::LoadU(d, from + index)); };
  Vector sum = hn::Zero(d);
  int64_t index = 0;
  if (count >= 4 * lanes) {
    Vector second = sum;
    Vector third = sum;
    Vector fourth = sum;
    for (; index + 4 * lanes <= count; index += 4 * lanes) {
      sum = hn::Add(sum, at(index));
      second = hn::Add(second, at(index + lanes));
      third = hn::Add(third, at(index + 2 * lanes));
      fourth = hn::Add(fourth, at(index + 3 * lanes));
    }
    sum = hn::Add(hn::Add(sum, second), hn::Add(third, fourth));
  }
  for (; index + lanes <= count; index += lanes) sum = hn::Add(sum, at(index));
  if (index < count) {
    const auto used = hn::FirstN(d, static_cast<size_t>(count - index));
    const Vector last = function(load_some(d, from + index, count - index));
    sum = hn::Add(sum, hn::IfThenElseZero(used, last));
  }
  return sum;
}

// Adds the lanes in double: if one of them has most of the sum, each addition in float32 would
// round the whole sum.
HWY_INLINE double total_of(Vector vector) {
  HWY_ALIGN float lanes[hn::MaxLanes(Tag())];
  hn::Store(vector, Tag(), lanes);
  double total = 0;
  for (int64_t lane = 0; lane < lane_count(); ++lane) total += lanes[lane];
  return total;
}

template <class Function>
HWY_INLINE double sum_of(const float* HWY_RESTRICT from, int64_t count, const Function& function) {
  return total_of(lane_sums(from, count, function));
}

struct LaneSums {
  Vector plain;
  Vector squares;
};

// The sums of x - centre and its square over a chunk. Elements at `later` are prefetched.
HWY_INLINE LaneSums sums_around(const float* HWY_RESTRICT from, int64_t count, float centre_number,
                                const float* later) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Vector centre = hn::Set(d, centre_number);
  Vector plain = hn::Zero(d);
  Vector squares = plain;
  Vector second_plain = plain;
  Vector second_squares = plain;
  Vector third_plain = plain;
  Vector third_squares = plain;
  Vector fourth_plain = plain;
  Vector fourth_squares = plain;
  const auto take = [&](int64_t index, Vector& sum, Vector& square) HWY_ATTR {
    prefetch_later(later + index);
    const Vector x = hn::Sub(hn::LoadU(d, from + index), centre);
    sum = hn::Add(sum, x);
    square = hn::MulAdd(x, x, square);
  };
  int64_t index = 0;
  // No sum is of more than kChunkSteps vectors: each addition rounds.
  const bool is_long = count > 2 * kChunkSteps * lanes;
  for (; is_long && index + 4 * lanes <= count; index += 4 * lanes) {
    take(index, plain, squares);
    take(index + lanes, second_plain, second_squares);
    take(index + 2 * lanes, third_plain, third_squares);
    take(index + 3 * lanes, fourth_plain, fourth_squares);
  }
  for (; index + 2 * lanes <= count; index += 2 * lanes) {
    take(index, plain, squares);
    take(index + lanes, second_plain, second_squares);
  }
  if (index + lanes <= count) {
    take(index, plain, squares);
    index += lanes;
  }
  if (index < count) {
    const auto used = hn::FirstN(d, static_cast<size_t>(count - index));
    const Vector last = load_some(d, from + index, count - index);
    const Vector x = hn::IfThenElseZero(used, hn::Sub(last, centre));
    second_plain = hn::Add(second_plain, x);
    second_squares = hn::MulAdd(x, x, second_squares);
  }
  return {hn::Add(hn::Add(plain, second_plain), hn::Add(third_plain, fourth_plain)),
          hn::Add(hn::Add(squares, second_squares), hn::Add(third_squares, fourth_squares))};
}

// Computes in double throughout, for numbers whose squares overflow or underflow in float32.
Moments moments_in_double(const float* from, int64_t length) {
  Moments moments;
  for (int64_t index = 0; index < length; ++index) moments.mean += from[index];
  moments.mean /= static_cast<double>(length);
  for (int64_t index = 0; index < length; ++index) {
    const double centred = from[index] - moments.mean;
    moments.variance += centred * centred;
  }
  moments.variance /= static_cast<double>(length);
  return moments;
}

// Two passes over each chunk while it is in the first-level cache. Chunks are combined as in Chan,
// Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979).
Moments moments_of(const float* from, int64_t length) {
  const int64_t chunk = 4 * kChunkSteps * lane_count();
  double mean = 0;
  double squares = 0;
  for (int64_t done = 0; done < length; done += chunk) {
    const int64_t count = std::min(chunk, length - done);
    const auto size = static_cast<double>(count);
    const auto centre =
        static_cast<float>(sum_of(from + done, count, [](Vector x) HWY_ATTR { return x; }) / size);
    // The rounding error of the mean is the mean of the differences from it.
    const LaneSums around = sums_around(from + done, count, centre, from + done + count);
    const double lost = total_of(around.plain) / size;
    const double around_squares = total_of(around.squares);
    const double own = centre + lost;
    const double distance = own - mean;
    const auto before = static_cast<double>(done);
    const double share = size / (before + size);
    squares +=
        std::max(0.0, around_squares - size * lost * lost) + distance * distance * before * share;
    mean += distance * share;
  }
  if (!std::isfinite(squares)) return moments_in_double(from, length);
  return {mean, squares / static_cast<double>(length)};
}

// The mean of the squares, as a variance around 0.
Moments moments_around_zero(const float* from, int64_t length) {
  const int64_t chunk = 4 * kChunkSteps * lane_count();
  double squares = 0;
  for (int64_t done = 0; done < length; done += chunk) {
    squares += sum_of(from + done, std::min(chunk, length - done),
                      [](Vector x) HWY_ATTR { return hn::Mul(x, x); });
  }
  if (!std::isfinite(squares)) {
    squares = 0;
    for (int64_t index = 0; index < length; ++index) squares += double{from[index]} * from[index];
  }
  return {0, squares / static_cast<double>(length)};
}

template <class Function>
HWY_INLINE void map(const float* from, float* to, int64_t count, const Function& function) {
  const Tag d;
  for_vectors(
      d, count,
      [&](int64_t index) HWY_ATTR {
        prefetch_read(from + index);
        hn::StoreU(function(index, hn::LoadU(d, from + index),
                            [&](const float* all) HWY_ATTR { return hn::LoadU(d, all + index); }),
                   d, to + index);
      },
      [&](int64_t index, int64_t rest) HWY_ATTR {
        const auto load = [&](const float* all)
                              HWY_ATTR { return load_some(d, all + index, rest); };
        store_some(function(index, load(from), load), d, to + index, rest);
      });
}

// Relu; NaN stays NaN.
HWY_INLINE Vector without_negative(Vector x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(Tag())), x);
}

void affine(const float* from, float* to, int64_t count, const Affine& parameters) {
  const Tag d;
  const Vector mean = hn::Set(d, parameters.mean);
  const Vector factor = hn::Set(d, parameters.factor);
  const Vector shift = hn::Set(d, parameters.shift);
  const auto plain = [&](int64_t, Vector x, const auto&)
                         HWY_ATTR { return hn::MulAdd(hn::Sub(x, mean), factor, shift); };
  if (!parameters.has_relu) return map(from, to, count, plain);
  map(from, to, count, [&](int64_t index, Vector x, const auto& load) HWY_ATTR {
    return without_negative(plain(index, x, load));
  });
}

template <bool kHasRelu>
void apply_periodic(const float* from, float* to, int64_t count, const PeriodicAffine& parameters) {
  for (int64_t done = 0; done < count; done += parameters.period) {
    map(from + done, to + done, std::min(parameters.period, count - done),
        [&](int64_t, Vector x, const auto& load) HWY_ATTR {
          const Vector result = hn::MulAdd(hn::Sub(x, load(parameters.means)),
                                           load(parameters.factors), load(parameters.shifts));
          return kHasRelu ? without_negative(result) : result;
        });
  }
}

void periodic(const float* from, float* to, int64_t count, const PeriodicAffine& parameters) {
  if (parameters.has_relu) return apply_periodic<true>(from, to, count, parameters);
  apply_periodic<false>(from, to, count, parameters);
}

// The mean of a row, the factor of the differences from it, and the correction of its rounding
// error.
struct RowAffine {
  float mean;
  float factor;
  float lost;
};

void write_row(const float* source, float* target, const RowAffine& row,
               const RowNormalization& parameters) {
  const Tag d;
  const Vector mean = hn::Set(d, row.mean);
  const Vector factor = hn::Set(d, row.factor);
  const Vector lost = hn::Set(d, row.lost);
  const auto plain = [&](Vector x) HWY_ATTR { return hn::MulAdd(hn::Sub(x, mean), factor, lost); };
  const int64_t length = parameters.length;
  const float* scale = parameters.scale;
  const float* shift = parameters.shift;
  if (scale != nullptr && shift != nullptr) {
    map(source, target, length, [&](int64_t, Vector x, const auto& load) HWY_ATTR {
      return hn::MulAdd(plain(x), load(scale), load(shift));
    });
  } else if (scale != nullptr) {
    map(source, target, length, [&](int64_t, Vector x, const auto& load) HWY_ATTR {
      return hn::Mul(plain(x), load(scale));
    });
  } else {
    map(source, target, length, [&](int64_t, Vector x, const auto&) HWY_ATTR { return plain(x); });
  }
}

void one_row(const float* source, float* target, const RowNormalization& parameters, float* mean,
             float* inverse) {
  const Moments moments = parameters.is_centred ? moments_of(source, parameters.length)
                                                : moments_around_zero(source, parameters.length);
  const double factor = 1 / std::sqrt(moments.variance + parameters.epsilon);
  if (mean != nullptr) *mean = static_cast<float>(moments.mean);
  if (inverse != nullptr) *inverse = static_cast<float>(factor);
  const auto rounded = static_cast<float>(moments.mean);
  write_row(
      source, target,
      {rounded, static_cast<float>(factor), static_cast<float>((rounded - moments.mean) * factor)},
      parameters);
}

// Normalizes kRowsAtOnce rows that are short enough for sums in float32, in the same two passes as
// moments_of(). Gives false, and writes nothing, if float32 is too inaccurate for their variances.
HWY_INLINE bool some_rows(const float* from, float* to, const RowNormalization& parameters,
                          float* means, float* inverses) {
  constexpr int64_t kRows = kRowsAtOnce;
  const Tag d;
  const RowTag few;
  const int64_t length = parameters.length;
  const auto add = [](auto left, auto right) HWY_ATTR { return hn::Add(left, right); };
  HWY_ALIGN float plain[kRows * kRows];
  HWY_ALIGN float squares[kRows * kRows];
  HWY_ALIGN float centres[kRows] = {};
  const RowVector share = hn::Set(few, 1 / static_cast<float>(length));
  if (parameters.is_centred) {
    for (int64_t row = 0; row < kRows; ++row) {
      const Vector sums =
          lane_sums(from + row * length, length, [](Vector x) HWY_ATTR { return x; });
      hn::Store(folded(d, sums, add), few, plain + row * kRows);
    }
    hn::Store(hn::Mul(row_totals(plain, add), share), few, centres);
  }
  for (int64_t row = 0; row < kRows; ++row) {
    const LaneSums around =
        sums_around(from + row * length, length, centres[row], from + (row + kRows) * length);
    hn::Store(folded(d, around.plain, add), few, plain + row * kRows);
    hn::Store(folded(d, around.squares, add), few, squares + row * kRows);
  }
  // The rounding error of the mean is the mean of the differences from it.
  const RowVector lost =
      parameters.is_centred ? hn::Mul(row_totals(plain, add), share) : hn::Zero(few);
  const RowVector variance =
      hn::Add(hn::NegMulAdd(lost, lost, hn::Mul(row_totals(squares, add), share)),
              hn::Set(few, static_cast<float>(parameters.epsilon)));
  const auto is_sound =
      hn::And(hn::Gt(variance, hn::Set(few, 1e-30F)), hn::Lt(variance, hn::Inf(few)));
  if (!hn::AllTrue(few, is_sound)) return false;
  const RowVector inverse = hn::Div(hn::Set(few, 1.0F), hn::Sqrt(variance));
  HWY_ALIGN float factors[kRows];
  HWY_ALIGN float shifts[kRows];
  hn::Store(inverse, few, factors);
  hn::Store(hn::Neg(hn::Mul(lost, inverse)), few, shifts);
  if (means != nullptr) hn::StoreU(hn::Add(hn::Load(few, centres), lost), few, means);
  if (inverses != nullptr) hn::StoreU(inverse, few, inverses);
  for (int64_t row = 0; row < kRows; ++row) {
    write_row(from + row * length, to + row * length, {centres[row], factors[row], shifts[row]},
              parameters);
  }
  return true;
}

// The longest rows that are processed several at once: they stay in the first-level cache of a
// core.
constexpr int64_t kMaxShortRow = 1024;

void rows(const float* from, float* to, int64_t rows, const RowNormalization& parameters,
          float* means, float* inverses) {
  const int64_t length = parameters.length;
  const auto at = [](float* first, int64_t row) {
    return first == nullptr ? nullptr : first + row;
  };
  const bool is_short = kRowsAtOnce > 1 && length <= kMaxShortRow;
  for (int64_t row = 0; row < rows;) {
    if (is_short && row + kRowsAtOnce <= rows &&
        some_rows(from + row * length, to + row * length, parameters, at(means, row),
                  at(inverses, row))) {
      row += kRowsAtOnce;
      continue;
    }
    const int64_t end = is_short ? std::min(rows, row + kRowsAtOnce) : rows;
    for (; row < end; ++row) {
      one_row(from + row * length, to + row * length, parameters, at(means, row),
              at(inverses, row));
    }
  }
}

// 1 / sqrt(x) to 2 ulp, for x neither very small nor very large: an approximate instruction,
// refined by Newton's method. Much faster than a square root and a division.
HWY_INLINE Vector inverse_root(Vector x) {
  const Tag d;
  // The approximation has 14 correct bits, 12, or fewer.
  constexpr int kSteps = HWY_TARGET <= HWY_AVX3 ? 1 : 2;
  Vector guess = hn::ApproximateReciprocalSqrt(x);
  for (int step = 0; step < kSteps; ++step) {
    const Vector half = hn::Mul(hn::Mul(hn::Set(d, 0.5F), x), guess);
    guess = hn::MulAdd(guess, hn::NegMulAdd(half, guess, hn::Set(d, 0.5F)), guess);
  }
  return guess;
}

// x / base ^ exponent, in vectors for the exponents that models have.
HWY_INLINE Vector divided_by_power(Vector x, Vector base, float exponent) {
  const Tag d;
  if (exponent == 1) return hn::Div(x, base);
  const auto is_usual = hn::And(hn::Gt(base, hn::Set(d, 1e-30F)), hn::Lt(base, hn::Set(d, 1e30F)));
  if (exponent == 0.75F && hn::AllTrue(d, is_usual)) {
    const Vector root = inverse_root(base);
    return hn::Mul(x, hn::Mul(root, hn::Mul(root, inverse_root(root))));
  }
  if (exponent == 0.5F) return hn::Div(x, hn::Sqrt(base));
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(base, d, lanes);
  for (int64_t lane = 0; lane < lane_count(); ++lane) {
    lanes[lane] = static_cast<float>(std::pow(double{lanes[lane]}, double{exponent}));
  }
  return hn::Div(x, hn::Load(d, lanes));
}

void local_response(const float* from, float* to, int64_t begin, int64_t end, int64_t rows,
                    int64_t stride, int64_t width, const LocalResponse& parameters) {
  const Tag d;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = std::max<int64_t>(0, row - parameters.before);
    const int64_t last = std::min(rows - 1, row + parameters.after);
    map(from + row * stride, to + row * stride, width,
        [&](int64_t, Vector x, const auto& load) HWY_ATTR {
          Vector squares = hn::Zero(d);
          for (int64_t other = first; other <= last; ++other) {
            const Vector y = load(from + other * stride);
            squares = hn::MulAdd(y, y, squares);
          }
          const Vector base =
              hn::MulAdd(squares, hn::Set(d, parameters.factor), hn::Set(d, parameters.bias));
          return divided_by_power(x, base, parameters.exponent);
        });
  }
}

NormalizationLoops all_loops() { return {moments_of, affine, periodic, rows, local_response}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(all_loops);

NormalizationLoops find_normalization_loops() { return HWY_DYNAMIC_DISPATCH(all_loops)(); }

Affine affine_of(const Moments& moments, double factor, double shift) {
  const auto mean = static_cast<float>(moments.mean);
  return {mean, static_cast<float>(factor),
          static_cast<float>(shift + (mean - moments.mean) * factor)};
}

}  // namespace tessera::native

#endif  // HWY_ONCE
