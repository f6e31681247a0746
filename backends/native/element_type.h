// Loops that are templates of the element type, found by the data type or by the element's bytes.
#pragma once

#include <cstdint>

#include "tessera/backend.h"

namespace tessera::native {

// The data type whose elements are a T.
template <class T>
inline constexpr int32_t kDataTypeOf = TESSERA_UNDEFINED;
template <>
inline constexpr int32_t kDataTypeOf<bool> = TESSERA_BOOL;
template <>
inline constexpr int32_t kDataTypeOf<int8_t> = TESSERA_INT8;
template <>
inline constexpr int32_t kDataTypeOf<int16_t> = TESSERA_INT16;
template <>
inline constexpr int32_t kDataTypeOf<int32_t> = TESSERA_INT32;
template <>
inline constexpr int32_t kDataTypeOf<int64_t> = TESSERA_INT64;
template <>
inline constexpr int32_t kDataTypeOf<uint8_t> = TESSERA_UINT8;
template <>
inline constexpr int32_t kDataTypeOf<uint16_t> = TESSERA_UINT16;
template <>
inline constexpr int32_t kDataTypeOf<uint32_t> = TESSERA_UINT32;
template <>
inline constexpr int32_t kDataTypeOf<uint64_t> = TESSERA_UINT64;
template <>
inline constexpr int32_t kDataTypeOf<float> = TESSERA_FLOAT32;
template <>
inline constexpr int32_t kDataTypeOf<double> = TESSERA_FLOAT64;

// find.operator()<T>() for the one of `Types` whose data type it is; where it is none of them, a
// value like no loop (null, where loops are functions):
//   find_loop<float, double>(data_type, []<class T>() -> Loop { return run<T>; })
template <class First, class... Others, class Find>
auto find_loop(int32_t data_type, const Find& find) {
  using Found = decltype(find.template operator()<First>());
  if (data_type == kDataTypeOf<First>) return find.template operator()<First>();
  if constexpr (sizeof...(Others) == 0) {
    return Found{};
  } else {
    return find_loop<Others...>(data_type, find);
  }
}

// The same for all types that C++ computes with: those but the 16-bit floating ones.
template <class Find>
auto find_number_loop(int32_t data_type, const Find& find) {
  return find_loop<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float,
                   double>(data_type, find);
}

// The same for loops that only move elements: find.operator()<T>() for the unsigned T of so many
// bytes, which are 1, 2, 4 or 8.
template <class Find>
auto find_moving_loop(int64_t element_bytes, const Find& find) {
  if (element_bytes == 1) return find.template operator()<uint8_t>();
  if (element_bytes == 2) return find.template operator()<uint16_t>();
  if (element_bytes == 4) return find.template operator()<uint32_t>();
  return find.template operator()<uint64_t>();
}

}  // namespace tessera::native
