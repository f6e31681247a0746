#include "cache/fingerprint.h"

#include "base/matchers_test.h"

namespace tessera::cache {
namespace {

const std::vector<Ingredient> kSome = {{"graph", "a1"}, {"threads", "2"}};

TEST(Fingerprint, HasFortyDigits) {
  const std::string digits = text(fingerprint_of(kSome));
  EXPECT_EQ(digits.size(), 40U);
  EXPECT_EQ(digits.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(text(fingerprint_of(kSome)), digits);
}

TEST(Fingerprint, DigestIsTheBeginningOfBlake2b) {
  EXPECT_EQ(digest_text("abc"), "bddd813c634239723171ef3fee98579b94964e3b");
}

TEST(Fingerprint, DependsOnNamesValuesAndWhereTheyEnd) {
  const std::vector<std::vector<Ingredient>> others = {
      {},
      {{"graph", "a1"}},
      {{"graph", "a1"}, {"threads", "1"}},
      {{"graph", "a1"}, {"thread", "s2"}},
      {{"graph", "a1t"}, {"hreads", "2"}},
      {{"threads", "2"}, {"graph", "a1"}},
      {{"graph", "a1"}, {"threads", "2"}, {"", ""}},
  };
  for (const std::vector<Ingredient>& other : others) {
    EXPECT_NE(fingerprint_of(other), fingerprint_of(kSome));
  }
}

TEST(Fingerprint, DifferencesAreNamedWithBothValues) {
  EXPECT_EQ(explain_difference(kSome, kSome), "");
  const std::vector<Ingredient> here = {{"graph", "a1"}, {"threads", "1"}, {"pins", ""}};
  EXPECT_EQ(explain_difference(kSome, here),
            "threads: 2 in the file, 1 now, pins: nothing in the file, none now");
  EXPECT_THAT(different_names(kSome, here), ElementsAre("threads", "pins"));
}

}  // namespace
}  // namespace tessera::cache
