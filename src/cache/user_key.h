// The secret key of one user on one machine, which authenticates files that Tessera wrote itself.
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

  // The MAC of `head` followed by `rest`. Compare MACs with is_equal().
  Mac authenticate(std::span<const char> head, std::span<const char> rest = {}) const;

 private:
  std::array<uint8_t, 32> bytes_;
};

struct FoundKey {
  std::optional<UserKey> key;
  std::string reason;  // why there is none
};

// The key in `folder` / "key"; nullopt if there is none or `folder` is "".
std::optional<UserKey> find_key(const std::filesystem::path& folder);

// Same as find_key(), but creates a missing key and folder; nullopt if that fails.
std::optional<UserKey> make_key(const std::filesystem::path& folder);

// The key in `folder` / "key"; if it is missing, creates one of 32 random bytes, readable by its
// owner only. Refuses a key that others can read or write.
FoundKey find_or_make_key(const std::filesystem::path& folder);

}  // namespace tessera::cache
