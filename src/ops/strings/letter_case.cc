#include "ops/strings/letter_case.h"

#include <wctype.h>  // NOLINT(modernize-deprecated-headers): POSIX has towlower_l() there

#include <cstdint>
#include <span>

#include "base/text/utf8.h"

namespace tessera::ops {
namespace {

template <class Map>
std::string mapped(std::string_view text, std::span<const uint32_t> of_ascii, const Map& map) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte < of_ascii.size() && of_ascii[byte] < of_ascii.size()) {
      result += static_cast<char>(of_ascii[byte]);
      text.remove_prefix(1);
      continue;
    }
    const CodePoint found = first_code_point(text);
    if (found.bytes == 0) {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    append_code_point(map(found.number), result);
    text.remove_prefix(found.bytes);
  }
  return result;
}

}  // namespace

LetterCase::LetterCase(const std::string& locale_name) {
  // Without a name newlocale() would obey the environment.
  for (const std::string& name : {locale_name + ".UTF-8", locale_name, std::string("C.UTF-8")}) {
    if (locale_name.empty() && name != "C.UTF-8") continue;
    locale_.reset(newlocale(LC_CTYPE_MASK, name.c_str(), nullptr));
    if (locale_ != nullptr) break;
  }
  for (uint32_t letter = 0; letter < upper_of_ascii_.size(); ++letter) {
    upper_of_ascii_[letter] = upper_of(letter);
    lower_of_ascii_[letter] = lower_of(letter);
  }
}

uint32_t LetterCase::upper_of(uint32_t letter) const {
  if (locale_ != nullptr) return static_cast<uint32_t>(towupper_l(letter, locale_.get()));
  return letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter;
}

uint32_t LetterCase::lower_of(uint32_t letter) const {
  if (locale_ != nullptr) return static_cast<uint32_t>(towlower_l(letter, locale_.get()));
  return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

std::string LetterCase::upper(std::string_view text) const {
  return mapped(text, upper_of_ascii_, [&](uint32_t letter) { return upper_of(letter); });
}

std::string LetterCase::lower(std::string_view text) const {
  return mapped(text, lower_of_ascii_, [&](uint32_t letter) { return lower_of(letter); });
}

}  // namespace tessera::ops
