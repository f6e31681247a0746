// Characters of text in UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// A character: its number in Unicode, and its length in bytes.
struct CodePoint {
  uint32_t number = 0;
  size_t bytes = 0;
};

// The character at the beginning of `text`, which is not empty; {} if the bytes there are none in
// valid UTF-8: overlong forms and halves of surrogate pairs are not.
CodePoint first_code_point(std::string_view text);

// Appends a number that Unicode has.
void append_code_point(uint32_t number, std::string& text);

}  // namespace tessera
