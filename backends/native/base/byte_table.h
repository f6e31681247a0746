// A function of single bytes, as a table of 256 results. Compiled once for each instruction set:
// files that foreach_target.h includes include this header after highway.h.
#if defined(TESSERA_NATIVE_BYTE_TABLE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_BYTE_TABLE_H
#undef TESSERA_NATIVE_BYTE_TABLE_H
#else
#define TESSERA_NATIVE_BYTE_TABLE_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#undef TESSERA_HAS_BYTE_TABLE_LANES
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4 || HWY_TARGET == HWY_AVX3_SPR
// Two permutations of 128 bytes each; the highest bit of the byte chooses between them.
struct ByteTableLanes {
  using D = hn::FixedTag<uint8_t, 64>;
  static constexpr int64_t kLanes = 64;

  explicit HWY_INLINE ByteTableLanes(const uint8_t* table) {
    const D d;
    for (size_t part = 0; part < 4; ++part) parts[part] = hn::LoadU(d, table + part * 64);
  }
  HWY_INLINE hn::Vec<D> of(hn::Vec<D> bytes) const {
    const D d;
    const auto index = hn::IndicesFromVec(d, hn::And(bytes, hn::Set(d, uint8_t{127})));
    const auto low = hn::TwoTablesLookupLanes(d, parts[0], parts[1], index);
    const auto high = hn::TwoTablesLookupLanes(d, parts[2], parts[3], index);
    return hn::IfThenElse(hn::Ge(bytes, hn::Set(d, uint8_t{128})), high, low);
  }
  hn::Vec<D> parts[4];
};
#define TESSERA_HAS_BYTE_TABLE_LANES 1
#elif HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// Sixteen look-ups of 16 bytes, whose results add up by exclusive or: part k has the difference of
// the results of parts k and k - 1. An index counts from the start of a part, and is negative, so
// that it finds 0, before it. Saturation keeps indices of the other half negative.
struct ByteTableLanes {
  using D = hn::ScalableTag<uint8_t>;
  static constexpr size_t kParts = 16;
  static constexpr size_t kPartBytes = 16;
  static constexpr int64_t kLanes = hn::MaxLanes(D());

  explicit HWY_INLINE ByteTableLanes(const uint8_t* table) {
    const D d;
    for (size_t part = 0; part < kParts; ++part) {
      parts[part] = hn::LoadDup128(d, table + part * kPartBytes);
    }
    for (size_t part = kParts - 1; part > 0; --part) {
      if (part != kParts / 2) parts[part] = hn::Xor(parts[part], parts[part - 1]);
    }
  }
  HWY_INLINE hn::Vec<D> of(hn::Vec<D> bytes) const {
    const D d;
    const hn::RebindToSigned<D> integers;
    const auto step = hn::Set(integers, static_cast<int8_t>(kPartBytes));
    auto low = hn::BitCast(integers, bytes);
    auto high = hn::Xor(low, hn::Set(integers, static_cast<int8_t>(-128)));
    auto result = hn::TableLookupBytesOr0(parts[0], low);
    auto upper = hn::TableLookupBytesOr0(parts[kParts / 2], high);
    for (size_t part = 1; part < kParts / 2; ++part) {
      low = hn::SaturatedSub(low, step);
      high = hn::SaturatedSub(high, step);
      result = hn::Xor(result, hn::TableLookupBytesOr0(parts[part], low));
      upper = hn::Xor(upper, hn::TableLookupBytesOr0(parts[kParts / 2 + part], high));
    }
    return hn::BitCast(d, hn::Or(result, upper));
  }
  hn::Vec<D> parts[kParts];
};
#define TESSERA_HAS_BYTE_TABLE_LANES 1
#else
#define TESSERA_HAS_BYTE_TABLE_LANES 0
#endif

// to[i] = table[from[i]]; `to` may be `from`.
HWY_INLINE void map_bytes(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t count) {
  int64_t index = 0;
#if TESSERA_HAS_BYTE_TABLE_LANES
  // To load the table takes as long as some tens of look-ups.
  constexpr int64_t kMinCount = 128;
  if (count < kMinCount) {
    for (; index < count; ++index) to[index] = table[from[index]];
    return;
  }
  const ByteTableLanes lanes(table);
  const ByteTableLanes::D d;
  for (; index + ByteTableLanes::kLanes <= count; index += ByteTableLanes::kLanes) {
    hn::StoreU(lanes.of(hn::LoadU(d, from + index)), d, to + index);
  }
#endif
  // Results are gathered in a word: a store for each byte would take as long as the look-ups.
  constexpr int64_t kWord = sizeof(uint64_t);
  for (; index + kWord <= count; index += kWord) {
    uint8_t results[kWord];
    for (int64_t byte = 0; byte < kWord; ++byte) {
      results[byte] = table[from[index + byte]];
    }
    __builtin_memcpy(to + index, results, sizeof(results));
  }
  for (; index < count; ++index) to[index] = table[from[index]];
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
