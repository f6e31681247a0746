#include "cache/stored_fields.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/errors/check.h"
#include "tessera/error.h"

namespace tessera::cache {

Checksum checksum_of(std::span<const char> first, std::span<const char> second) {
  const std::array pieces = {std::string_view(first.data(), first.size()),
                             std::string_view(second.data(), second.size())};
  return checksum_of_pieces(pieces);
}

Checksum checksum_of_pieces(std::span<const std::string_view> pieces) {
  XXH3_state_t* const state = XXH3_createState();
  TESSERA_CHECK(state != nullptr, "it takes less than a page");
  XXH3_128bits_reset(state);
  for (const std::string_view piece : pieces) {
    if (!piece.empty()) XXH3_128bits_update(state, piece.data(), piece.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  FieldWriter writer;
  writer.number(uint64_t{hash.low64});
  writer.number(uint64_t{hash.high64});
  Checksum checksum;
  std::copy(writer.bytes.begin(), writer.bytes.end(), checksum.begin());
  return checksum;
}

void fail_damaged(const std::string& location, const std::string& message, const char* remedy) {
  throw Error(ErrorKind::Corrupt, location, message + "; it is damaged: " + remedy);
}

}  // namespace tessera::cache
