// Encoding of fields in the files of this folder: little-endian numbers, length-prefixed strings,
// checksums.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/fingerprint.h"

namespace tessera::cache {

// XXH3, 128 bits: the low 64, then the high 64.
inline constexpr size_t kChecksumBytes = 16;
using Checksum = std::array<char, kChecksumBytes>;
Checksum checksum_of(std::span<const char> first, std::span<const char> second = {});
// The checksum of bytes that are in several pieces.
Checksum checksum_of_pieces(std::span<const std::string_view> pieces);

class FieldWriter {
 public:
  template <class Number>
  void number(Number value) {
    for (size_t index = 0; index < sizeof(Number); ++index) {
      bytes += static_cast<char>((value >> (8 * index)) & 0xff);
    }
  }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes += text;
  }
  void ingredients(const std::vector<Ingredient>& list) {
    number(static_cast<uint32_t>(list.size()));
    for (const Ingredient& ingredient : list) {
      text(ingredient.name);
      text(ingredient.value);
    }
  }
  void raw(std::span<const char> part) { bytes.append(part.data(), part.size()); }

  std::string bytes;
};

// What a user does about a damaged file that is made again on demand.
inline constexpr const char* kRemoveIt = "remove it";
// Throws Corrupt at `location`: `message`, and what to do.
[[noreturn]] void fail_damaged(const std::string& location, const std::string& message,
                               const char* remedy = kRemoveIt);

// Throws Corrupt, with `remedy`, if the bytes do not hold the requested field.
class FieldReader {
 public:
  FieldReader(std::span<const char> bytes, std::string location, const char* remedy = kRemoveIt)
      : bytes_(bytes), location_(std::move(location)), remedy_(remedy) {}

  template <class Number>
  Number number(const char* what) {
    const std::span<const char> part = raw(sizeof(Number), what);
    Number value = 0;
    for (size_t index = 0; index < sizeof(Number); ++index) {
      value |= Number{static_cast<uint8_t>(part[index])} << (8 * index);
    }
    return value;
  }
  std::string text(const char* what) {
    const auto length = number<uint32_t>(what);
    const std::span<const char> part = raw(length, what);
    return {part.begin(), part.end()};
  }
  std::span<const char> raw(size_t length, const char* what) {
    if (length > bytes_.size()) {
      fail_damaged(location_,
                   "expected " + std::to_string(length) + " bytes of " + what + ", found " +
                       std::to_string(bytes_.size()),
                   remedy_);
    }
    const std::span<const char> part = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return part;
  }
  // Reads the length of a list whose entries take at least `min_bytes` each; a length beyond the
  // remaining bytes is corrupt.
  size_t count(const char* what, size_t min_bytes) {
    const auto count = number<uint32_t>(what);
    if (count > bytes_.size() / min_bytes) {
      fail_damaged(location_,
                   "expected no more " + std::string(what) + " than there is room for, found " +
                       std::to_string(count),
                   remedy_);
    }
    return count;
  }
  std::vector<Ingredient> ingredients() {
    std::vector<Ingredient> list(count("ingredients", kMinIngredientBytes));
    for (Ingredient& ingredient : list) {
      ingredient.name = text("an ingredient's name");
      ingredient.value = text("an ingredient's value");
    }
    return list;
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  static constexpr size_t kMinIngredientBytes = 8;

  std::span<const char> bytes_;
  std::string location_;
  const char* remedy_;
};

}  // namespace tessera::cache
