// What a stored result depends on, by name, and the fingerprint of all of it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cache {

// One thing that what is stored depends on. Where two differ, people are shown both values, so a
// value is short: of something long it is the digest.
struct Ingredient {
  std::string name;   // "threads"
  std::string value;  // "2"
  bool operator==(const Ingredient&) const = default;
};

// The first 160 bits of a digest.h digest.
struct Fingerprint {
  std::array<uint8_t, 20> bytes = {};
  auto operator<=>(const Fingerprint&) const = default;
};

// Over names and values, in their order.
Fingerprint fingerprint_of(std::span<const Ingredient> ingredients);

// 40 hexadecimal digits.
std::string text(const Fingerprint& fingerprint);

// 40 hexadecimal digits of a digest: the value of an ingredient that is long.
std::string digest_text(std::string_view bytes);

// "threads: 2 there, 1 here", for each ingredient that is not the same in both, with commas; ""
// where none is.
std::string explain_difference(std::span<const Ingredient> there, std::span<const Ingredient> here);

// The names of those.
std::vector<std::string> different_names(std::span<const Ingredient> there,
                                         std::span<const Ingredient> here);

}  // namespace tessera::cache
