// Element types: their sizes, and how loops that are templates of the type are found by the data
// type or by the size of an element.
#pragma once

#include <cstdint>

#include "tessera/backend.h"

namespace tessera::native {

inline constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
inline constexpr int64_t kMaxElementBytes = 8;

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

// Calls find.operator()<T>() for the one of `Types` that has this data type. If none has it, gives
// an empty value (null, if loops are function pointers):
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

// Same as find_loop() for all numeric types except 16-bit floating-point ones, which C++ lacks.
template <class Find>
auto find_number_loop(int32_t data_type, const Find& find) {
  return find_loop<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float,
                   double>(data_type, find);
}

// For loops that only copy elements: calls find.operator()<T>() for the unsigned T with this many
// bytes (1, 2, 4 or 8).
template <class Find>
auto find_loop_for_size(int64_t element_bytes, const Find& find) {
  if (element_bytes == 1) return find.template operator()<uint8_t>();
  if (element_bytes == 2) return find.template operator()<uint16_t>();
  if (element_bytes == 4) return find.template operator()<uint32_t>();
  return find.template operator()<uint64_t>();
}

}  // namespace tessera::native
