#include "cache/digest.h"

#include <sodium.h>

#include <string_view>

#include "base/check.h"

namespace tessera::cache {
namespace {

Digest hash(std::span<const char> bytes, const uint8_t* key, size_t key_bytes) {
  // Chooses instructions of this processor.
  static const bool kIsReady = sodium_init() >= 0;
  Digest digest = {};
  const bool is_done =
      kIsReady && crypto_generichash(digest.data(), digest.size(),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     bytes.size(), key, key_bytes) == 0;
  TESSERA_CHECK(is_done, "libsodium has BLAKE2b of 256 bits, with a key of 256 bits or none");
  return digest;
}

}  // namespace

Digest digest_of(std::span<const char> bytes) { return hash(bytes, nullptr, 0); }

Digest digest_of(std::span<const char> bytes, std::span<const uint8_t, 32> key) {
  return hash(bytes, key.data(), key.size());
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

}  // namespace tessera::cache
