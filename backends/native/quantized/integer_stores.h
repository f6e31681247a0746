// Applies the epilogue of a product of bytes to sums in int32, and stores the results.
// foreach_target.h includes this header several times, so it has no ordinary include guard.
#if defined(TESSERA_NATIVE_INTEGER_STORES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_INTEGER_STORES_H
#undef TESSERA_NATIVE_INTEGER_STORES_H
#else
#define TESSERA_NATIVE_INTEGER_STORES_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/partial_vector.h"
#include "base/quantizing.h"
#include "hwy/highway.h"
#include "quantized/integer_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

using SumTag = hn::ScalableTag<int32_t>;
using Sums = hn::Vec<SumTag>;
using RealTag = hn::ScalableTag<float>;
using Reals = hn::Vec<RealTag>;

HWY_INLINE int64_t sum_lanes() { return static_cast<int64_t>(hn::Lanes(SumTag())); }

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_sums_up_to(hn::Vec<D> vector, D d, T* to, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(vector, d, to);
  } else {
    store_some(vector, d, to, count);
  }
}

// The sums of one row and one vector of columns, with what zero points add.
HWY_INLINE Sums corrected(const IntegerEpilogue& epilogue, int64_t row, int64_t column,
                          const int32_t* from) {
  const SumTag d;
  const Sums sums = hn::Add(hn::Load(d, from), hn::LoadU(d, epilogue.terms + column));
  if (epilogue.row_sums == nullptr) return sums;
  const Sums zeros = hn::LoadU(d, epilogue.right_zeros + column);
  return hn::Sub(sums, hn::Mul(hn::Set(d, epilogue.row_sums[row]), zeros));
}

HWY_INLINE Reals scaled(const IntegerEpilogue& epilogue, int64_t column, Sums sums) {
  const RealTag d;
  const Reals factors = hn::LoadU(d, epilogue.factors + column);
  const Reals numbers = hn::ConvertTo(d, sums);
  if (epilogue.offsets == nullptr) return hn::Mul(numbers, factors);
  return hn::MulAdd(numbers, factors, hn::LoadU(d, epilogue.offsets + column));
}

HWY_INLINE Reals reals_of(const IntegerEpilogue& epilogue, int64_t column, Sums sums) {
  const RealTag d;
  Reals result = scaled(epilogue, column, sums);
  const Reals low = hn::Set(d, epilogue.low);
  const Reals high = hn::Set(d, epilogue.high);
  // A NaN stays.
  result = hn::IfThenElse(hn::Lt(result, low), low, result);
  return hn::IfThenElse(hn::Gt(result, high), high, result);
}

// The integers of a vector whose products are too near to the middle between two integers to be
// rounded in float32, without the zero point.
inline HWY_NOINLINE Sums rounded_exactly(Sums sums, const float* scales, const ExactScale& exact,
                                         double low, double high) {
  const SumTag d;
  HWY_ALIGN int32_t lanes[hn::MaxLanes(d)];
  hn::Store(sums, d, lanes);
  for (int64_t lane = 0; lane < sum_lanes(); ++lane) {
    const double number = static_cast<double>(lanes[lane]) * exact.factor *
                          static_cast<double>(scales[lane]) / exact.divisor;
    // A NaN becomes the lowest integer.
    const double limited = number > low ? std::min(number, high) : low;
    lanes[lane] = static_cast<int32_t>(std::nearbyint(limited));
  }
  return hn::Load(d, lanes);
}

template <bool kIsExact>
HWY_INLINE Sums bytes_of(const IntegerEpilogue& epilogue, int64_t column, Sums sums) {
  const RealTag d;
  const SumTag di;
  Reals numbers = scaled(epilogue, column, sums);
  const auto low = static_cast<float>(epilogue.lowest - epilogue.zero);
  const auto high = static_cast<float>(epilogue.highest - epilogue.zero);
  numbers = hn::Min(hn::Max(numbers, hn::Set(d, low)), hn::Set(d, high));
  Sums rounded = hn::NearestInt(numbers);
  if constexpr (kIsExact) {
    // Sum, factor and product were rounded: numbers of up to 512 have an error of less than 2^-12.
    const Reals middle = hn::Set(d, 0.5F - 0x1p-11F);
    const Reals distance = hn::Abs(hn::Sub(numbers, hn::ConvertTo(d, rounded)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(distance, middle)))) {
      rounded = rounded_exactly(sums, epilogue.exact.scales + column, epilogue.exact, low, high);
    }
  }
  return hn::Add(rounded, hn::Set(di, epilogue.zero));
}

// Calls store(epilogue, sums, column, position of the result, columns that exist) for each vector.
// The epilogue is a copy, because compilers must assume that stored bytes change the original.
template <class Store>
HWY_INLINE void for_sums(const IntegerBlock& block, int64_t row, int64_t rows, const int32_t* sums,
                         int64_t row_stride, const Store& store) {
  const int64_t lanes = sum_lanes();
  const IntegerEpilogue epilogue = block.epilogue;
  const int64_t columns = block.columns;
  const int64_t to_row_stride = block.to_row_stride;
  int64_t at = row * to_row_stride;
  for (int64_t line = row; line < row + rows; ++line, at += to_row_stride, sums += row_stride) {
    for (int64_t column = 0; column < columns; column += lanes) {
      store(epilogue, corrected(epilogue, line, column, sums + column), column, at + column,
            std::min(lanes, columns - column));
    }
  }
}

template <class T, bool kIsExact>
HWY_INLINE void store_bytes(const IntegerBlock& block, int64_t row, int64_t rows,
                            const int32_t* from, int64_t row_stride) {
  const hn::Rebind<T, SumTag> d;
  const int64_t lanes = sum_lanes();
  const int64_t together = kQuantizedVectors<T> * lanes;
  // A copy, because compilers must assume that stored bytes change the original.
  const IntegerEpilogue epilogue = block.epilogue;
  const int64_t columns = block.columns;
  const int64_t to_row_stride = block.to_row_stride;
  T* to = static_cast<T*>(block.to) + row * to_row_stride;
  const QuantizedStore<T> store;
  for (int64_t line = row; line < row + rows; ++line, to += to_row_stride, from += row_stride) {
    const auto integers_at = [&](int64_t column) HWY_ATTR {
      const Sums sums = corrected(epilogue, line, column, from + column);
      return bytes_of<kIsExact>(epilogue, column, sums);
    };
    int64_t column = 0;
    for (; column + together <= columns; column += together) {
      store.put(to + column,
                [&](int64_t vector) HWY_ATTR { return integers_at(column + vector * lanes); });
    }
    for (; column < columns; column += lanes) {
      const auto bytes = hn::DemoteTo(d, integers_at(column));
      if (column + lanes <= columns) {
        hn::StoreU(bytes, d, to + column);
      } else {
        HWY_ALIGN T last[HWY_MAX(hn::MaxLanes(d), 16)];
        hn::StoreU(bytes, d, last);
        std::memcpy(to + column, last, static_cast<size_t>(columns - column));
      }
    }
  }
}

// Applies the epilogue to sums of some rows, in aligned memory, and stores the results.
inline HWY_NOINLINE void store_sums(const IntegerBlock& block, int64_t row, int64_t rows,
                                    const int32_t* from, int64_t row_stride) {
  const IntegerEpilogue& epilogue = block.epilogue;
  const auto store_integers = [&](const IntegerEpilogue&, Sums sums, int64_t, int64_t at,
                                  int64_t count) HWY_ATTR {
    store_sums_up_to(sums, SumTag(), static_cast<int32_t*>(block.to) + at, count);
  };
  const auto store_reals = [&](const IntegerEpilogue& copy, Sums sums, int64_t column, int64_t at,
                               int64_t count) HWY_ATTR {
    store_sums_up_to(reals_of(copy, column, sums), RealTag(), static_cast<float*>(block.to) + at,
                     count);
  };
  if (epilogue.to == SumsTo::Integers) {
    for_sums(block, row, rows, from, row_stride, store_integers);
  } else if (epilogue.to == SumsTo::Reals) {
    for_sums(block, row, rows, from, row_stride, store_reals);
  } else if (epilogue.is_signed) {
    epilogue.exact.scales != nullptr
        ? store_bytes<int8_t, true>(block, row, rows, from, row_stride)
        : store_bytes<int8_t, false>(block, row, rows, from, row_stride);
  } else {
    epilogue.exact.scales != nullptr
        ? store_bytes<uint8_t, true>(block, row, rows, from, row_stride)
        : store_bytes<uint8_t, false>(block, row, rows, from, row_stride);
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
