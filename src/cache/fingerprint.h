// The named ingredients that a stored result depends on, and their fingerprint.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cache {

// One thing that a stored result depends on. If two values differ, users see both, so values are
// short: digests for anything long.
struct Ingredient {
  std::string name;   // "threads"
  std::string value;  // "2"
  bool operator==(const Ingredient&) const = default;
};

// The first 160 bits of a digest (digest.h).
struct Fingerprint {
  std::array<uint8_t, 20> bytes = {};
  auto operator<=>(const Fingerprint&) const = default;
};

// Depends on names, values and their order.
Fingerprint fingerprint_of(std::span<const Ingredient> ingredients);

// 40 hexadecimal digits.
std::string text(const Fingerprint& fingerprint);

// The first 40 hexadecimal digits of a digest, for ingredients with long values.
std::string digest_text(std::string_view bytes);

// "threads: 2 there, 1 here" for each ingredient that differs, separated by commas; "" if there is
// none.
std::string explain_difference(std::span<const Ingredient> there, std::span<const Ingredient> here);

// The names of those that differ.
std::vector<std::string> different_names(std::span<const Ingredient> there,
                                         std::span<const Ingredient> here);

}  // namespace tessera::cache
