#include "ops/strings/letter_case.h"

#include <gtest/gtest.h>

namespace tessera::ops {
namespace {

TEST(LetterCase, MapsLettersOfAllAlphabets) {
  const LetterCase letters("");
  EXPECT_EQ(letters.upper("straße, añb, привет, λ"), "STRAßE, AÑB, ПРИВЕТ, Λ");
  EXPECT_EQ(letters.lower("ÄÖÜ ΔΣ Ж 123 漢字 😀"), "äöü δσ ж 123 漢字 😀");
  EXPECT_EQ(letters.upper(""), "");
}

TEST(LetterCase, UsesUnicodeIfALanguageIsUnknown) {
  EXPECT_EQ(LetterCase("xx_NOWHERE").upper("é"), "É");
}

TEST(LetterCase, LeavesBytesThatAreNoText) {
  const LetterCase letters("");
  // A byte that begins nothing, a character that is cut off, an overlong one, a surrogate.
  for (const char* bytes : {"\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF8\x88\x80\x80\x80"}) {
    EXPECT_EQ(letters.upper(std::string("a") + bytes + "b"), std::string("A") + bytes + "B");
  }
}

}  // namespace
}  // namespace tessera::ops
