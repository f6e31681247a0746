// The number of fields of a struct, to check lists of them.
#pragma once

#include <cstddef>

namespace tessera {

// Converts to a field of any type.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): it stands for any initialiser
};

// How many initialisers an aggregate takes.
template <class Struct, class... Fields>
constexpr size_t field_count() {
  if constexpr (requires { Struct{Fields()..., AnyField()}; }) {
    return field_count<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace tessera
