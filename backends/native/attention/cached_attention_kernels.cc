// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "attention/cached_attention_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cached_attention_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/exponential.h"
#include "base/float_functions.h"
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// The rows of queries that share a pass over keys or values.
constexpr int kMostQueries = 4;

// The most terms that are added up at once: longer sums lose digits.
constexpr int64_t kMostTerms = 512;

// --- Products with keys --------------------------------------------------------------------------

// kRows queries from `row` on by kKeys keys from `key` on.
template <int kRows, int kKeys>
HWY_INLINE void multiply_some_keys(const VectorRows& queries, int64_t row, const VectorRows& keys,
                                   int64_t key, float* scores, int64_t scores_stride) {
  const Tag d;
  const int64_t lanes = lane_count();
  const float* query = queries.first + row * queries.stride;
  const float* vector = keys.first + key * keys.stride;
  Vector sums[kRows][kKeys];
  for (auto& line : sums) {
    for (Vector& sum : line) sum = hn::Zero(d);
  }
  const auto add = [&](int64_t index, const auto& load) HWY_ATTR {
    Vector factors[kKeys];
    for (int each = 0; each < kKeys; ++each)
      factors[each] = load(vector + each * keys.stride + index);
    for (int line = 0; line < kRows; ++line) {
      const Vector factor = load(query + line * queries.stride + index);
      for (int each = 0; each < kKeys; ++each) {
        sums[line][each] = hn::MulAdd(factor, factors[each], sums[line][each]);
      }
    }
  };
  int64_t index = 0;
  for (; index + lanes <= keys.size; index += lanes) {
    add(index, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (index < keys.size) {
    const int64_t rest = keys.size - index;
    add(index, [&](const float* from) HWY_ATTR { return load_some(d, from, rest); });
  }
  float* to = scores + row * scores_stride + key;
  for (int line = 0; line < kRows; ++line, to += scores_stride) {
    for (int each = 0; each < kKeys; ++each) {
      to[each] = hn::GetLane(hn::SumOfLanes(d, sums[line][each]));
    }
  }
}

template <int kRows>
void multiply_keys_of(const VectorRows& queries, int64_t row, const VectorRows& keys, float* scores,
                      int64_t scores_stride) {
  constexpr int kKeys = kRows == 1 ? 4 : 2;
  int64_t key = 0;
  for (; key + kKeys <= keys.count; key += kKeys) {
    multiply_some_keys<kRows, kKeys>(queries, row, keys, key, scores, scores_stride);
  }
  for (; key < keys.count; ++key) {
    multiply_some_keys<kRows, 1>(queries, row, keys, key, scores, scores_stride);
  }
}

void multiply_keys(const VectorRows& queries, const VectorRows& keys, float* scores,
                   int64_t scores_stride) {
  int64_t row = 0;
  for (; row + kMostQueries <= queries.count; row += kMostQueries) {
    multiply_keys_of<kMostQueries>(queries, row, keys, scores, scores_stride);
  }
  for (; row + 2 <= queries.count; row += 2) {
    multiply_keys_of<2>(queries, row, keys, scores, scores_stride);
  }
  if (row < queries.count) multiply_keys_of<1>(queries, row, keys, scores, scores_stride);
}

// --- Weights -------------------------------------------------------------------------------------

// Calls change(index, x) for each vector of [0, count), stores what it returns, and gives it to
// visit(). Lanes behind the end have `other`.
template <class Change, class Visit>
HWY_INLINE void change_row(float* row, int64_t count, float other, const Change& change,
                           const Visit& visit) {
  const Tag d;
  for_vectors(
      d, count,
      [&](int64_t index) HWY_ATTR {
        const Vector x = change(hn::LoadU(d, row + index), [&](const float* from) HWY_ATTR {
          return hn::LoadU(d, from + index);
        });
        hn::StoreU(x, d, row + index);
        visit(x);
      },
      [&](int64_t index, int64_t rest) HWY_ATTR {
        const Vector x = change(load_some(d, row + index, rest), [&](const float* from) HWY_ATTR {
          return load_some(d, from + index, rest);
        });
        store_some(x, d, row + index, rest);
        const auto used = hn::FirstN(d, static_cast<size_t>(rest));
        visit(hn::IfThenElse(used, x, hn::Set(d, other)));
      });
}

// Prepares the scores and returns the largest.
HWY_INLINE float prepare_scores(float* scores, int64_t count, const ScoreForm& form) {
  const Tag d;
  Vector largest = hn::Set(d, form.sink);
  const Vector scale = hn::Set(d, form.scale);
  const Vector cap = hn::Set(d, form.cap);
  change_row(
      scores, count, form.sink,
      [&](Vector x, const auto& load) HWY_ATTR {
        x = hn::Mul(x, scale);
        if (form.cap > 0) x = hn::Mul(tanh_of(d, hn::Div(x, cap)), cap);
        return form.bias == nullptr ? x : hn::Add(x, load(form.bias));
      },
      [&](Vector x) HWY_ATTR { largest = hn::Max(largest, x); });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

void weigh(float* scores, int64_t count, const ScoreForm& form) {
  const Tag d;
  const float largest = prepare_scores(scores, count, form);
  const Vector shift = hn::Set(d, largest);
  double total = 0;
  if (form.sink > -std::numeric_limits<float>::infinity()) total = std::exp(form.sink - largest);
  for (int64_t done = 0; done < count; done += kMostTerms) {
    Vector sum = hn::Zero(d);
    change_row(
        scores + done, std::min(kMostTerms, count - done), 0.0F,
        [&](Vector x, const auto&) HWY_ATTR { return exponential(d, hn::Sub(x, shift)); },
        [&](Vector x) HWY_ATTR { sum = hn::Add(sum, x); });
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  const Vector factor = hn::Set(d, static_cast<float>(1 / total));
  change_row(
      scores, count, 0.0F, [&](Vector x, const auto&) HWY_ATTR { return hn::Mul(x, factor); },
      [](Vector) HWY_ATTR {});
}

// --- Sums of values ------------------------------------------------------------------------------

// kRows rows by kVectors vectors from element `first` on, the last of which has `last` elements.
// Adds to what `to` has if `adds`.
template <int kRows, int kVectors>
HWY_INLINE void mix_vectors(const float* weights, int64_t weights_stride, const VectorRows& values,
                            int64_t first, int64_t last, bool adds, float* to, int64_t to_stride) {
  const Tag d;
  const int64_t lanes = lane_count();
  Vector sums[kRows][kVectors];
  for (auto& line : sums) {
    for (Vector& sum : line) sum = hn::Zero(d);
  }
  const bool is_whole = last == lanes;
  const float* value = values.first + first;
  for (int64_t key = 0; key < values.count; ++key, value += values.stride) {
    Vector factors[kVectors];
    for (int vector = 0; vector + 1 < kVectors; ++vector) {
      factors[vector] = hn::LoadU(d, value + vector * lanes);
    }
    const float* end = value + (kVectors - 1) * lanes;
    factors[kVectors - 1] = is_whole ? hn::LoadU(d, end) : load_some(d, end, last);
    for (int line = 0; line < kRows; ++line) {
      const Vector weight = hn::Set(d, weights[line * weights_stride + key]);
      for (int vector = 0; vector < kVectors; ++vector) {
        sums[line][vector] = hn::MulAdd(weight, factors[vector], sums[line][vector]);
      }
    }
  }
  for (int line = 0; line < kRows; ++line) {
    for (int vector = 0; vector < kVectors; ++vector) {
      float* const target = to + line * to_stride + first + vector * lanes;
      const int64_t count = vector + 1 < kVectors ? lanes : last;
      Vector sum = sums[line][vector];
      if (count == lanes) {
        if (adds) sum = hn::Add(sum, hn::LoadU(d, target));
        hn::StoreU(sum, d, target);
      } else {
        if (adds) sum = hn::Add(sum, load_some(d, target, count));
        store_some(sum, d, target, count);
      }
    }
  }
}

template <int kRows>
void mix_rows(const float* weights, int64_t weights_stride, const VectorRows& values, bool adds,
              float* to, int64_t to_stride) {
  constexpr int kVectors = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  const int64_t lanes = lane_count();
  int64_t first = 0;
  for (; first + kVectors * lanes <= values.size; first += kVectors * lanes) {
    mix_vectors<kRows, kVectors>(weights, weights_stride, values, first, lanes, adds, to,
                                 to_stride);
  }
  for (; first < values.size; first += lanes) {
    mix_vectors<kRows, 1>(weights, weights_stride, values, first,
                          std::min(lanes, values.size - first), adds, to, to_stride);
  }
}

void mix_values(const float* weights, int64_t weights_stride, int64_t rows,
                const VectorRows& values, bool adds, float* to, int64_t to_stride) {
  int64_t done = 0;
  // Without values, the sums are zeros.
  do {
    VectorRows part = values;
    part.first += done * values.stride;
    part.count = std::min(kMostTerms, values.count - done);
    int64_t row = 0;
    for (; row + kMostQueries <= rows; row += kMostQueries) {
      mix_rows<kMostQueries>(weights + row * weights_stride + done, weights_stride, part, adds,
                             to + row * to_stride, to_stride);
    }
    for (; row + 2 <= rows; row += 2) {
      mix_rows<2>(weights + row * weights_stride + done, weights_stride, part, adds,
                  to + row * to_stride, to_stride);
    }
    if (row < rows) {
      mix_rows<1>(weights + row * weights_stride + done, weights_stride, part, adds,
                  to + row * to_stride, to_stride);
    }
    done += kMostTerms;
    adds = true;
  } while (done < values.count);
}

// --- Rotation ------------------------------------------------------------------------------------

struct Rotated {
  Vector real;
  Vector imaginary;
};

HWY_INLINE Rotated rotated(Vector real, Vector imaginary, Vector cosine, Vector sine) {
  return {hn::NegMulAdd(sine, imaginary, hn::Mul(cosine, real)),
          hn::MulAdd(sine, real, hn::Mul(cosine, imaginary))};
}

void rotate(const float* from, int64_t size, const VectorRotation& rotation, float* to) {
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t half = rotation.half;
  int64_t index = 0;
  for (; index + lanes <= half; index += lanes) {
    const Vector cosine = hn::LoadU(d, rotation.cosines + index);
    const Vector sine = hn::LoadU(d, rotation.sines + index);
    if (rotation.is_interleaved) {
      Vector real;
      Vector imaginary;
      hn::LoadInterleaved2(d, from + 2 * index, real, imaginary);
      const Rotated result = rotated(real, imaginary, cosine, sine);
      hn::StoreInterleaved2(result.real, result.imaginary, d, to + 2 * index);
    } else {
      const Rotated result =
          rotated(hn::LoadU(d, from + index), hn::LoadU(d, from + half + index), cosine, sine);
      hn::StoreU(result.real, d, to + index);
      hn::StoreU(result.imaginary, d, to + half + index);
    }
  }
  const int64_t step = rotation.is_interleaved ? 2 : 1;
  const int64_t distance = rotation.is_interleaved ? 1 : half;
  for (; index < half; ++index) {
    const float real = from[index * step];
    const float imaginary = from[index * step + distance];
    to[index * step] = rotation.cosines[index] * real - rotation.sines[index] * imaginary;
    to[index * step + distance] =
        rotation.sines[index] * real + rotation.cosines[index] * imaginary;
  }
  std::copy(from + 2 * half, from + size, to + 2 * half);
}

CachedAttentionLoops cached_attention_loops() { return {multiply_keys, weigh, mix_values, rotate}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(cached_attention_loops);

CachedAttentionLoops find_cached_attention_loops() {
  return HWY_DYNAMIC_DISPATCH(cached_attention_loops)();
}

}  // namespace tessera::native

#endif  // HWY_ONCE
