// The processor's caches, for whoever measures how long reading memory takes.
#pragma once

#include <cstdint>

namespace tessera {

// Bytes of the largest cache; 32 MiB where the system does not tell.
int64_t last_level_cache_bytes();

// Bytes of the largest cache that each core has for itself; 1 MiB where the system does not tell.
int64_t core_cache_bytes();

// Takes [data, data + bytes) out of all caches, of all cores. Where the processor has no
// instruction for that, by reading more than its caches hold.
void evict_from_caches(const void* data, int64_t bytes);

// Reads all of it, so that it is in the caches as far as it fits.
void read_into_caches(const void* data, int64_t bytes);

}  // namespace tessera
