// Cryptographic digests: BLAKE2b (RFC 7693) of 256 bits; and one-time authentication codes, which
// are seven times as fast. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::cache {

using Digest = std::array<uint8_t, 32>;

Digest digest_of(std::span<const char> bytes);

// The keyed digest (message authentication code) of `head` followed by `rest`.
Digest digest_of(std::span<const char> head, std::span<const char> rest,
                 std::span<const uint8_t, 32> key);

// Poly1305 (RFC 8439). It authenticates only if `key` is secret and never used for other bytes.
using OneTimeCode = std::array<uint8_t, 16>;
OneTimeCode one_time_code(std::span<const char> bytes, std::span<const uint8_t, 32> key);

// 64 lower-case hexadecimal digits.
std::string hexadecimal(const Digest& digest);

// Compares in constant time.
bool is_equal(const Digest& left, const Digest& right);
bool is_equal(const OneTimeCode& left, const OneTimeCode& right);

}  // namespace tessera::cache
