// The key of one user on one machine, by which Tessera knows what it wrote itself.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "cache/digest.h"

namespace tessera::cache {

using Mac = Digest;

class UserKey {
 public:
  explicit UserKey(std::array<uint8_t, 32> bytes) : bytes_(bytes) {}

  // A digest with the key. is_equal() compares two.
  Mac authenticate(std::span<const char> bytes) const;

 private:
  std::array<uint8_t, 32> bytes_;
};

struct FoundKey {
  std::optional<UserKey> key;
  std::string reason;  // why there is none
};

// The key in `folder` / "key"; none where `folder` is "" or has none.
std::optional<UserKey> find_key(const std::filesystem::path& folder);

// The same, made where there is none, and with it the folder; none where it cannot be.
std::optional<UserKey> make_key(const std::filesystem::path& folder);

// The key in `folder` / "key", made where there is none: of 32 random bytes, readable for its owner
// alone. One that others could read or write is refused.
FoundKey find_or_make_key(const std::filesystem::path& folder);

}  // namespace tessera::cache
