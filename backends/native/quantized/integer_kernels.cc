// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/integer_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantized/integer_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "quantized/integer_stores.h"

// The functions of the epilogue are inlined into loops with and without VNNI, so these need no
// more than the target.
HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// What 4 bytes on the left are to all forms.
constexpr int64_t kLeftStepBytes = 4;

// Keeps a sum in its register: compilers move products of several rows before their sums, which
// then do not have enough registers.
[[maybe_unused]] HWY_INLINE void keep_here([[maybe_unused]] Sums& sums) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  asm volatile("" : "+v"(sums.raw));
#endif
}

// The sum of elements, which may wrap around.
template <class T>
uint32_t sum_of(const void* from, int64_t count) {
  const T* const elements = static_cast<const T*>(from);
  uint32_t sum = 0;
  for (int64_t index = 0; index < count; ++index) sum += static_cast<uint32_t>(elements[index]);
  return sum;
}

// --- Words ---------------------------------------------------------------------------------------

namespace words {

constexpr LeftForm kLeftForm = LeftForm::Words;
constexpr int64_t kElementsOfStep = 2;

template <class T>
HWY_INLINE void copy_as_words(const T* from, int64_t count, int32_t zero, int16_t* to) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto zeros = hn::Set(d, static_cast<int16_t>(zero));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) {
    const auto words = hn::PromoteTo(d, hn::LoadU(narrow, from + index));
    hn::StoreU(hn::Sub(words, zeros), d, to + index);
  }
  for (; index < count; ++index) to[index] = static_cast<int16_t>(from[index] - zero);
}

void copy_left(const void* from, int64_t count, const LeftElements& elements, void* to) {
  if (elements.is_signed) {
    copy_as_words(static_cast<const int8_t*>(from), count, elements.zero,
                  static_cast<int16_t*>(to));
  } else {
    copy_as_words(static_cast<const uint8_t*>(from), count, elements.zero,
                  static_cast<int16_t*>(to));
  }
}

template <class T>
void spread_as_words(const T* from, int64_t count, int32_t zero, int64_t stride, int16_t* to) {
  for (int64_t index = 0; index < count; ++index) {
    to[index * stride] = static_cast<int16_t>(from[index] - zero);
  }
}

void spread_left(const void* from, int64_t count, const LeftElements& elements, int64_t stride,
                 void* to) {
  if (elements.is_signed) {
    spread_as_words(static_cast<const int8_t*>(from), count, elements.zero, stride,
                    static_cast<int16_t*>(to));
  } else {
    spread_as_words(static_cast<const uint8_t*>(from), count, elements.zero, stride,
                    static_cast<int16_t*>(to));
  }
}

constexpr auto kSumLeft = sum_of<int16_t>;

#if HWY_TARGET == HWY_SCALAR

// Two elements of one column.
struct Weights {
  int32_t first;
  int32_t second;
};
using Left = Weights;

HWY_INLINE Weights load_weights(const int8_t* from) { return {from[0], from[1]}; }

HWY_INLINE Left load_left(const uint8_t* from) {
  int16_t pair[2];
  std::memcpy(pair, from, sizeof(pair));
  return {pair[0], pair[1]};
}

HWY_INLINE Sums multiply_add(Sums sums, Left left, Weights weights) {
  // Each product is of less than 17 bits; sums wrap around.
  const int32_t products = left.first * weights.first + left.second * weights.second;
  return hn::Add(sums, hn::Set(SumTag(), products));
}

#else

using WordTag = hn::ScalableTag<int16_t>;
using Weights = hn::Vec<WordTag>;
using Left = Weights;

HWY_INLINE Weights load_weights(const int8_t* from) {
  return hn::PromoteTo(WordTag(), hn::LoadU(hn::Rebind<int8_t, WordTag>(), from));
}

HWY_INLINE Left load_left(const uint8_t* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof(pair));
  return hn::BitCast(WordTag(), hn::Set(SumTag(), pair));
}

HWY_INLINE Sums multiply_add(Sums sums, Left left, Weights weights) {
  // On x86, the sums of neighbours (pmaddwd): nothing is added to the other vector.
  Sums others = hn::Zero(SumTag());
  Sums result = hn::ReorderWidenMulAccumulate(SumTag(), left, weights, sums, others);
  keep_here(result);
  return result;
}

#endif

#include "quantized/integer_loops.h"

}  // namespace words

// --- Bytes ---------------------------------------------------------------------------------------

#undef TESSERA_HAS_BYTE_PRODUCTS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define TESSERA_HAS_BYTE_PRODUCTS 1
#else
#define TESSERA_HAS_BYTE_PRODUCTS 0
#endif

#if TESSERA_HAS_BYTE_PRODUCTS

void copy_as_bytes(const void* from, int64_t count, const LeftElements& elements, void* to) {
  if (!elements.is_signed) {
    std::memcpy(to, from, static_cast<size_t>(count));
    return;
  }
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (int64_t index = 0; index < count; ++index) {
    static_cast<uint8_t*>(to)[index] = static_cast<uint8_t>(bytes[index] ^ 0x80U);
  }
}

void spread_as_bytes(const void* from, int64_t count, const LeftElements& elements, int64_t stride,
                     void* to) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  const uint8_t flipped = elements.is_signed ? 0x80U : 0U;
  for (int64_t index = 0; index < count; ++index) {
    static_cast<uint8_t*>(to)[index * stride] = bytes[index] ^ flipped;
  }
}

// Weights that are small, without VNNI.
namespace small_bytes {

constexpr LeftForm kLeftForm = LeftForm::Bytes;
constexpr int64_t kElementsOfStep = 4;
constexpr auto copy_left = copy_as_bytes;
constexpr auto spread_left = spread_as_bytes;
constexpr auto kSumLeft = sum_of<uint8_t>;

using Weights = Sums;
using Left = Sums;

HWY_INLINE Weights load_weights(const int8_t* from) {
  return hn::LoadU(SumTag(), reinterpret_cast<const int32_t*>(from));
}

HWY_INLINE Left load_left(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return hn::Set(SumTag(), four);
}

HWY_INLINE Sums multiply_add(Sums sums, Left left, Weights weights) {
#if HWY_TARGET == HWY_AVX3
  const __m512i pairs = _mm512_maddubs_epi16(left.raw, weights.raw);
  Sums result = hn::Add(sums, Sums{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
#else
  const __m256i pairs = _mm256_maddubs_epi16(left.raw, weights.raw);
  Sums result = hn::Add(sums, Sums{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#endif
  keep_here(result);
  return result;
}

#include "quantized/integer_loops.h"

}  // namespace small_bytes

#endif

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if TESSERA_HAS_BYTE_PRODUCTS

// With VNNI, which no target of Highway 1.0 has.
#if HWY_TARGET == HWY_AVX3
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512vnni")
#else
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX2 ",avxvnni")
#endif
namespace tessera::native::HWY_NAMESPACE {
namespace {
namespace dot_bytes {

constexpr LeftForm kLeftForm = LeftForm::Bytes;
constexpr int64_t kElementsOfStep = 4;
constexpr auto copy_left = copy_as_bytes;
constexpr auto spread_left = spread_as_bytes;
constexpr auto kSumLeft = sum_of<uint8_t>;

using Weights = Sums;
using Left = Sums;

HWY_INLINE Weights load_weights(const int8_t* from) {
  return hn::LoadU(SumTag(), reinterpret_cast<const int32_t*>(from));
}

HWY_INLINE Left load_left(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return hn::Set(SumTag(), four);
}

HWY_INLINE Sums multiply_add(Sums sums, Left left, Weights weights) {
#if HWY_TARGET == HWY_AVX3
  Sums result{_mm512_dpbusd_epi32(sums.raw, left.raw, weights.raw)};
#else
  Sums result{_mm256_dpbusd_avx_epi32(sums.raw, left.raw, weights.raw)};
#endif
  keep_here(result);
  return result;
}

#include "quantized/integer_loops.h"

}  // namespace dot_bytes
}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

#if TESSERA_HAS_BYTE_PRODUCTS
bool has_dot_products() {
#if HWY_TARGET == HWY_AVX3
  return may_use_dot_products() && __builtin_cpu_supports("avx512vnni") != 0;
#else
  return may_use_dot_products() && __builtin_cpu_supports("avxvnni") != 0;
#endif
}
#endif

IntegerLoops loops_for([[maybe_unused]] bool has_small_weights) {
#if TESSERA_HAS_BYTE_PRODUCTS
  if (has_dot_products()) return dot_bytes::loops_of_form();
  if (has_small_weights) return small_bytes::loops_of_form();
#endif
  return words::loops_of_form();
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loops_for);

IntegerLoops find_integer_loops(bool has_small_weights) {
  return HWY_DYNAMIC_DISPATCH(loops_for)(has_small_weights);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
