#include "ops/convert_elements.h"

#include <limits>
#include <type_traits>

#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// Bools are read as bytes: a corrupt file may contain other values than 0 and 1.
struct Byte {
  uint8_t bits = 0;
};

template <class Visit>
void visit_any(DataType type, const Visit& visit) {
  if (type == DataType::Bool) {
    visit(TypeTag<Byte>{});
  } else {
    visit_numeric(type, visit);
  }
}

template <class Floating>
int64_t saturated_int64(Floating value) {
  // -2^63 is exact in every floating type here; 2^63 is the first value above the range.
  if (value >= Floating{0x1p63}) return std::numeric_limits<int64_t>::max();
  if (value <= Floating{-0x1p63}) return std::numeric_limits<int64_t>::min();
  return value != value ? 0 : static_cast<int64_t>(value);
}

template <class To, class Floating>
To integer_from(Floating value) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (value >= Floating{0x1p64}) return std::numeric_limits<To>::max();
    if (value >= Floating{0x1p63}) return static_cast<To>(value);
  }
  const int64_t wide = saturated_int64(value);
  if constexpr (std::is_same_v<To, int32_t>) {
    if (wide > std::numeric_limits<To>::max()) return std::numeric_limits<To>::max();
    if (wide < std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(wide);
}

// The C++ number that an element represents.
template <class From>
auto number_of(From element) {
  if constexpr (std::is_same_v<From, Byte>) {
    return static_cast<uint8_t>(element.bits != 0);
  } else {
    return static_cast<compute_t<From>>(element);
  }
}

template <class To, class Number>
To element_from(Number number) {
  if constexpr (std::is_same_v<To, Byte>) {
    return {static_cast<uint8_t>(number != 0)};
  } else if constexpr (std::is_floating_point_v<Number> && std::is_integral_v<To>) {
    return integer_from<To>(number);
  } else {
    return static_cast<To>(number);
  }
}

}  // namespace

void convert_elements(DataType from, const void* source, DataType to, void* target, int64_t count) {
  visit_any(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    visit_any(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      const From* input = static_cast<const From*>(source);
      To* output = static_cast<To*>(target);
      for (int64_t index = 0; index < count; ++index) {
        output[index] = element_from<To>(number_of(input[index]));
      }
    });
  });
}

}  // namespace tessera::ops
