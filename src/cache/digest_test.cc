#include "cache/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace tessera::cache {
namespace {

// Expected values from Python's hashlib.blake2b(..., digest_size=32).
TEST(Digest, IsBlake2bOf256Bits) {
  EXPECT_EQ(hexadecimal(digest_of({})),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hexadecimal(digest_of(std::string_view("abc"))),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Digest, TakesAKeyAsBlake2bDoes) {
  std::array<uint8_t, 32> key = {};
  std::fill_n(key.begin(), 20, uint8_t{0x0b});
  const std::string_view text = "Hi There";
  for (size_t head = 0; head <= text.size(); ++head) {
    EXPECT_EQ(hexadecimal(digest_of(text.substr(0, head), text.substr(head), key)),
              "0eb9efc53f28231fe92db94165071ab687fb0df157b98e2268419762d5c567cb");
  }
}

TEST(OneTimeCode, IsThatOfRfc8439) {
  const std::array<uint8_t, 32> key = {0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33,
                                       0x7f, 0x44, 0x52, 0xfe, 0x42, 0xd5, 0x06, 0xa8,
                                       0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d, 0xb2, 0xfd,
                                       0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b};
  const OneTimeCode code =
      one_time_code(std::string_view("Cryptographic Forum Research Group"), key);
  const OneTimeCode expected = {0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51, 0x36, 0xc6,
                                0xc2, 0x2b, 0x8b, 0xaf, 0x0c, 0x01, 0x27, 0xa9};
  EXPECT_TRUE(is_equal(code, expected));
  EXPECT_FALSE(is_equal(code, one_time_code(std::string_view("cryptographic"), key)));
}

TEST(Digest, DiffersByEachByte) {
  Digest other = digest_of(std::string_view("abc"));
  EXPECT_TRUE(is_equal(other, digest_of(std::string_view("abc"))));
  for (size_t at = 0; at < other.size(); ++at) {
    Digest changed = other;
    changed[at] ^= 1;
    EXPECT_FALSE(is_equal(other, changed)) << at;
  }
}

}  // namespace
}  // namespace tessera::cache
