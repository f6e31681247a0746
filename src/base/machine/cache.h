// The processor's caches, for measurements of memory reads.
#pragma once

#include <cstdint>

namespace tessera {

// Size of the largest cache in bytes; 32 MiB if the system does not tell.
int64_t last_level_cache_bytes();

// Size of the largest cache private to a core in bytes; 1 MiB if the system does not tell.
int64_t core_cache_bytes();

// Evicts [data, data + bytes) from all caches of all cores. Processors without such an instruction
// read more than their caches hold instead.
void evict_from_caches(const void* data, int64_t bytes);

// Reads the whole range, so that the caches hold as much of it as fits.
void read_into_caches(const void* data, int64_t bytes);

}  // namespace tessera
