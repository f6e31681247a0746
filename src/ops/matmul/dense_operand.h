// Dense matrices as operands of matrix_product.h.
#pragma once

#include <span>

#include "ops/convert_element.h"
#include "ops/matmul/matrix_product.h"

namespace tessera::ops {

// Converts elements to the type of sums and back. Integers keep their lower 64 bits, sign-extended.
template <class Sum, class T>
Sum widen(T value) {
  if constexpr (std::is_same_v<Sum, double>) {
    return to_double(value);
  } else {
    return static_cast<Sum>(value);
  }
}

template <class T, class Sum>
T narrow(Sum sum) {
  if constexpr (std::is_same_v<Sum, double>) {
    return from_double<T>(sum);
  } else {
    return static_cast<T>(sum);
  }
}

// MatrixOperand::read for contiguous lines of `line_length` elements. Product number p starts at
// element starts[p]; without `starts`, one matrix serves all products.
template <class Sum, class T>
struct ReadDense {
  const T* elements = nullptr;
  int64_t line_length = 0;
  std::span<const int64_t> starts = {};

  void operator()(int64_t product, int64_t line, int64_t begin, int64_t count, Sum* target) const {
    const int64_t start = starts.empty() ? 0 : starts[static_cast<size_t>(product)];
    const T* source = elements + start + line * line_length + begin;
    for (int64_t index = 0; index < count; ++index) target[index] = widen<Sum>(source[index]);
  }
};

// Calls visit(TypeTag<T>{}, TypeTag<Sum>{}) for the element types of ONNX's matrix products.
template <class Visit>
void visit_product_types(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::Int32:
      return visit(TypeTag<int32_t>{}, TypeTag<uint64_t>{});
    case DataType::Int64:
      return visit(TypeTag<int64_t>{}, TypeTag<uint64_t>{});
    case DataType::UInt32:
      return visit(TypeTag<uint32_t>{}, TypeTag<uint64_t>{});
    case DataType::UInt64:
      return visit(TypeTag<uint64_t>{}, TypeTag<uint64_t>{});
    default:
      return visit_floating(type, [&](auto tag) { visit(tag, TypeTag<double>{}); });
  }
}

inline constexpr TypeSet kProductTypes =
    kFloatTypes | TypeSet{DataType::Int32, DataType::Int64, DataType::UInt32, DataType::UInt64};

}  // namespace tessera::ops
