#include "base/text/utf8.h"

namespace tessera {

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](size_t index) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[index]));
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  uint32_t number = first & (0x7FU >> length);
  for (size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0U) != 0x80) return {};
    number = (number << 6U) | (byte(index) & 0x3FU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = number >= 0xD800 && number <= 0xDFFF;
  if (number < kSmallest[length] || number > 0x10FFFF || is_surrogate) return {};
  return {number, length};
}

void append_code_point(uint32_t number, std::string& text) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](uint32_t shift) { add(0x80U | ((number >> shift) & 0x3FU)); };
  if (number < 0x80) return add(number);
  if (number < 0x800) {
    add(0xC0U | (number >> 6U));
    return add_rest(0);
  }
  if (number < 0x10000) {
    add(0xE0U | (number >> 12U));
  } else {
    add(0xF0U | (number >> 18U));
    add_rest(12);
  }
  add_rest(6);
  add_rest(0);
}

}  // namespace tessera
