// Digests that nobody can forge: BLAKE2b (RFC 7693) of 256 bits. Safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::cache {

using Digest = std::array<uint8_t, 32>;

Digest digest_of(std::span<const char> bytes);

// With a key: a message authentication code.
Digest digest_of(std::span<const char> bytes, std::span<const uint8_t, 32> key);

// 64 lower-case digits.
std::string hexadecimal(const Digest& digest);

// In time that does not depend on where they differ.
bool is_equal(const Digest& left, const Digest& right);

}  // namespace tessera::cache
