#include "cache/fingerprint.h"

#include <algorithm>

#include "cache/digest.h"

namespace tessera::cache {
namespace {

Fingerprint shortened(std::string_view bytes) {
  const Digest digest = digest_of(bytes);
  Fingerprint result;
  std::copy_n(digest.begin(), result.bytes.size(), result.bytes.begin());
  return result;
}

void append(std::string& bytes, std::string_view text) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>((text.size() >> shift) & 0xff);
  }
  bytes += text;
}

const std::string* find(std::span<const Ingredient> ingredients, const std::string& name) {
  for (const Ingredient& ingredient : ingredients) {
    if (ingredient.name == name) return &ingredient.value;
  }
  return nullptr;
}

struct Difference {
  std::string name;
  const std::string* there;
  const std::string* here;
};

std::vector<Difference> differences(std::span<const Ingredient> there,
                                    std::span<const Ingredient> here) {
  std::vector<Difference> found;
  for (const Ingredient& ingredient : there) {
    const std::string* value = find(here, ingredient.name);
    if (value != nullptr && *value == ingredient.value) continue;
    found.push_back({ingredient.name, &ingredient.value, value});
  }
  for (const Ingredient& ingredient : here) {
    if (find(there, ingredient.name) != nullptr) continue;
    found.push_back({ingredient.name, nullptr, &ingredient.value});
  }
  return found;
}

std::string shown(const std::string* value) {
  if (value == nullptr) return "nothing";
  if (value->empty()) return "none";
  return value->find(',') == std::string::npos ? *value : "'" + *value + "'";
}

}  // namespace

Fingerprint fingerprint_of(std::span<const Ingredient> ingredients) {
  std::string bytes;
  for (const Ingredient& ingredient : ingredients) {
    append(bytes, ingredient.name);
    append(bytes, ingredient.value);
  }
  return shortened(bytes);
}

std::string text(const Fingerprint& fingerprint) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const uint8_t byte : fingerprint.bytes) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

std::string digest_text(std::string_view bytes) { return text(shortened(bytes)); }

std::string explain_difference(std::span<const Ingredient> there,
                               std::span<const Ingredient> here) {
  std::string sentence;
  for (const Difference& difference : differences(there, here)) {
    sentence += (sentence.empty() ? "" : ", ") + difference.name + ": " + shown(difference.there) +
                " in the file, " + shown(difference.here) + " now";
  }
  return sentence;
}

std::vector<std::string> different_names(std::span<const Ingredient> there,
                                         std::span<const Ingredient> here) {
  std::vector<std::string> names;
  for (const Difference& difference : differences(there, here)) names.push_back(difference.name);
  return names;
}

}  // namespace tessera::cache
