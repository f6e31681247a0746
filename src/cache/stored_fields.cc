#include "cache/stored_fields.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "tessera/error.h"

namespace tessera::cache {

Checksum checksum_of(std::span<const char> first, std::span<const char> second) {
  XXH3_state_t* const state = XXH3_createState();
  TESSERA_CHECK(state != nullptr, "it takes less than a page");
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, first.data(), first.size());
  if (!second.empty()) XXH3_128bits_update(state, second.data(), second.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  FieldWriter writer;
  writer.number(uint64_t{hash.low64});
  writer.number(uint64_t{hash.high64});
  Checksum checksum;
  std::copy(writer.bytes.begin(), writer.bytes.end(), checksum.begin());
  return checksum;
}

void fail_damaged(const std::string& location, const std::string& message) {
  throw Error(ErrorKind::Corrupt, location, message + "; it is damaged: remove it");
}

}  // namespace tessera::cache
