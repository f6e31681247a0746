// Attributes in one expression: attributes_of({{"axis", 1}, {"pads", {0, 1}}, {"mode", "edge"}}).
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/attribute.h"

namespace tessera {

// Whole numbers become int64, other numbers float.
struct NamedAttribute {
  NamedAttribute(const char* given, std::vector<int64_t> numbers)
      : name(given), value(std::move(numbers)) {}
  template <class T>
  NamedAttribute(const char* given, T single) : name(given) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<int64_t>(single);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<float>(single);
    } else if constexpr (std::is_convertible_v<T, const char*>) {
      value = std::string(single);
    } else {
      value = std::move(single);
    }
  }

  const char* name;
  Attribute value;
};

inline Attributes attributes_of(std::initializer_list<NamedAttribute> list) {
  Attributes attributes;
  for (const NamedAttribute& each : list) attributes.set(each.name, each.value);
  return attributes;
}

}  // namespace tessera
