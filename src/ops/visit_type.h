// Dispatch from an element type known at run time to a C++ type.
#pragma once

#include "base/errors/check.h"
#include "base/tensor/float16.h"
#include "tessera/data_type.h"

namespace tessera::ops {

template <class T>
struct TypeTag {
  using type = T;
};

// The type of arithmetic on storage type T: 16-bit floats are computed in float.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Float16> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

// The type of sums, wide enough that the reference is more accurate than the kernels it judges.
template <class T>
struct SumType {
  using type = T;
};
template <>
struct SumType<float> {
  using type = double;
};
template <>
struct SumType<Float16> {
  using type = double;
};
template <>
struct SumType<BFloat16> {
  using type = double;
};
template <class T>
using sum_t = typename SumType<T>::type;

// Calls visit(TypeTag<T>{}) for the four floating types. Usage: visit_floating(type, [&](auto tag)
// { using T = typename decltype(tag)::type; ... });
template <class Visit>
void visit_floating(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::Float16:
      return visit(TypeTag<Float16>{});
    case DataType::BFloat16:
      return visit(TypeTag<BFloat16>{});
    case DataType::Float32:
      return visit(TypeTag<float>{});
    case DataType::Float64:
      return visit(TypeTag<double>{});
    default:
      TESSERA_CHECK(false, "the schema admits floating types only");
  }
}

template <class Visit>
void visit_integer(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::Int8:
      return visit(TypeTag<int8_t>{});
    case DataType::Int16:
      return visit(TypeTag<int16_t>{});
    case DataType::Int32:
      return visit(TypeTag<int32_t>{});
    case DataType::Int64:
      return visit(TypeTag<int64_t>{});
    case DataType::UInt8:
      return visit(TypeTag<uint8_t>{});
    case DataType::UInt16:
      return visit(TypeTag<uint16_t>{});
    case DataType::UInt32:
      return visit(TypeTag<uint32_t>{});
    case DataType::UInt64:
      return visit(TypeTag<uint64_t>{});
    default:
      TESSERA_CHECK(false, "the schema admits integer types only");
  }
}

template <class Visit>
void visit_numeric(DataType type, const Visit& visit) {
  if (is_floating(type)) {
    visit_floating(type, visit);
  } else {
    visit_integer(type, visit);
  }
}

// For code that only moves elements: one instance per element size. T is uint8_t, uint16_t,
// uint32_t or uint64_t.
template <class Visit>
void visit_size(DataType type, const Visit& visit) {
  switch (element_bytes(type)) {
    case 1:
      return visit(TypeTag<uint8_t>{});
    case 2:
      return visit(TypeTag<uint16_t>{});
    case 4:
      return visit(TypeTag<uint32_t>{});
    case 8:
      return visit(TypeTag<uint64_t>{});
    default:
      TESSERA_CHECK(false, "elements have 1, 2, 4 or 8 bytes");
  }
}

}  // namespace tessera::ops
