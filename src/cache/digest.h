// Cryptographic digests: BLAKE2b (RFC 7693) of 256 bits. Thread-safe.
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

// 64 lower-case hexadecimal digits.
std::string hexadecimal(const Digest& digest);

// Compares in constant time.
bool is_equal(const Digest& left, const Digest& right);

}  // namespace tessera::cache
