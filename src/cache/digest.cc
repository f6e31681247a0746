#include "cache/digest.h"

#include <sodium.h>

#include <initializer_list>
#include <string_view>

#include "base/errors/check.h"

namespace tessera::cache {
namespace {

// sodium_init() selects instructions for this processor.
bool is_sodium_ready() {
  static const bool kIsReady = sodium_init() >= 0;
  return kIsReady;
}

using Parts = std::initializer_list<std::span<const char>>;

Digest hash(Parts parts, std::span<const uint8_t> key) {
  Digest digest = {};
  crypto_generichash_state state;
  bool is_done = is_sodium_ready() &&
                 crypto_generichash_init(&state, key.data(), key.size(), digest.size()) == 0;
  for (const std::span<const char> part : parts) {
    is_done = is_done &&
              crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                                        part.size()) == 0;
  }
  is_done = is_done && crypto_generichash_final(&state, digest.data(), digest.size()) == 0;
  TESSERA_CHECK(is_done, "libsodium has BLAKE2b of 256 bits, with a key of 256 bits or none");
  return digest;
}

}  // namespace

Digest digest_of(std::span<const char> bytes) { return hash({bytes}, {}); }

Digest digest_of(std::span<const char> head, std::span<const char> rest,
                 std::span<const uint8_t, 32> key) {
  return hash({head, rest}, key);
}

OneTimeCode one_time_code(std::span<const char> bytes, std::span<const uint8_t, 32> key) {
  OneTimeCode code = {};
  const bool is_done =
      is_sodium_ready() &&
      crypto_onetimeauth_poly1305(code.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                                  bytes.size(), key.data()) == 0;
  TESSERA_CHECK(is_done, "libsodium has Poly1305");
  return code;
}

std::string hexadecimal(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const uint8_t byte : digest) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

bool is_equal(const Digest& left, const Digest& right) {
  return sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

bool is_equal(const OneTimeCode& left, const OneTimeCode& right) {
  return sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace tessera::cache
