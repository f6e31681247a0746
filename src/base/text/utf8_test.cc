#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Utf8, ReadsWhatItWrites) {
  for (const uint32_t number : {0U, 0x41U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU,
                                0x10000U, 0x1F600U, 0x10FFFFU}) {
    std::string text;
    append_code_point(number, text);
    const CodePoint found = first_code_point(text + "x");
    EXPECT_EQ(found.number, number);
    EXPECT_EQ(found.bytes, text.size());
  }
  EXPECT_EQ(first_code_point("é").number, 0xE9U);
}

TEST(Utf8, FindsNoCharacterInOtherBytes) {
  // A byte that begins nothing, a character that is cut off, overlong ones, a surrogate, a number
  // beyond the last, and an old form of five bytes.
  for (const char* text : {"\x80", "\xC3", "\xE2\x82", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xC3\x41"}) {
    EXPECT_EQ(first_code_point(text).bytes, 0U) << text;
  }
}

}  // namespace
}  // namespace tessera
