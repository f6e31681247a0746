// Attention of a few new positions to a cache that has keys and values of all positions.
#pragma once

#include <cstdint>

#include "attention/cached_attention_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Vectors of heads in memory: that of head h at position s of batch b begins at
// b * batch + h * head + s * position.
struct HeadVectors {
  const float* data = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t position = 0;

  const float* at(int64_t b, int64_t h, int64_t s) const {
    return data + b * batch + h * head + s * position;
  }
};

// Keys or values: dense [batch, key_heads, positions, size].
struct HeadCache {
  const float* past = nullptr;  // null: there are no earlier positions
  int64_t past_positions = 0;
  float* present = nullptr;  // may be the same memory
};

// The rows of cosines and sines by which a vector is rotated.
struct RotationTable {
  const float* cosines = nullptr;  // null: nothing is rotated
  const float* sines = nullptr;
  int64_t rows = 0;
  int64_t half = 0;
  bool is_interleaved = false;
  const int64_t* positions = nullptr;  // rows by batch and position; null: positions in the cache
  int64_t positions_count = 0;
  int64_t positions_stride = 0;  // between batches
};

struct CachedAttention {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t queries = 0;                      // positions
  int64_t added = 0;                        // positions of new keys
  int64_t size = 0;                         // of a vector
  int64_t present = 0;                      // positions of the caches after the call
  int64_t total = 0;                        // positions of the longest sequence
  const int32_t* last_positions = nullptr;  // by batch
  HeadVectors query;
  HeadVectors key;
  HeadVectors value;
  HeadCache key_cache;
  HeadCache value_cache;
  RotationTable rotation;
  bool is_causal = true;
  int64_t window = -1;  // the most keys that a query sees, with its own; -1: all
  ScoreForm scores;     // without bias and sink
  const float* bias = nullptr;
  int64_t bias_batch = 0;  // strides
  int64_t bias_head = 0;
  const float* sinks = nullptr;  // by head
  bool has_smooth_softmax = false;
  float* to = nullptr;  // dense [batch, queries, heads, size]

  // Whether the queries are the first positions of all sequences.
  bool is_prompt() const { return queries == total && added == total; }
  // The number of keys of a sequence.
  int64_t length(int64_t b) const { return int64_t{last_positions[b]} + 1; }
  int64_t first_key(int64_t b) const { return is_prompt() ? 0 : length(b) - added; }
  int64_t first_query(int64_t b) const { return is_prompt() ? 0 : length(b) - queries; }
};

// Only the sizes count. `keys` is the largest number of keys.
int64_t cached_attention_workspace_bytes(const CachedAttention& sizes, int64_t keys,
                                         int64_t threads);

// Writes the new positions to the caches, and then `to`. Those before them are copied from the past
// to the present caches unless these are the same memory. Behind them, caches that grow are zero,
// and others keep what they have.
// Throws Failure (TESSERA_INVALID_ARGUMENT) if positions are outside of the caches.
void run_cached_attention(plugin::RunContext& context, const CachedAttention& attention,
                          int64_t threads, void* workspace);

}  // namespace tessera::native
