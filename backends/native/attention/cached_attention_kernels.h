// The loops of attention with a cache of keys and values, compiled for every instruction set that
// Highway supports. Keys and values are read where they are, once for a few rows of queries.
#pragma once

#include <cstdint>
#include <limits>

namespace tessera::native {

// Vectors of `size` elements, `stride` apart.
struct VectorRows {
  const float* first = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
  int64_t size = 0;
};

// What turns the products of a query and its keys into weights.
struct ScoreForm {
  float scale = 1;
  float cap = 0;                // a score is at most about as large; 0: any
  const float* bias = nullptr;  // added to each score; null: nothing
  // The score of one more key, without a value; -infinity: there is none.
  float sink = -std::numeric_limits<float>::infinity();
};

// How elements of a vector are rotated in pairs: by angles with these cosines and sines.
struct VectorRotation {
  const float* cosines = nullptr;  // `half` numbers
  const float* sines = nullptr;
  int64_t half = 0;
  bool is_interleaved = false;  // whether pairs are adjacent; else, one of each half
};

struct CachedAttentionLoops {
  // scores[row * scores_stride + key] = query row * key.
  void (*multiply_keys)(const VectorRows& queries, const VectorRows& keys, float* scores,
                        int64_t scores_stride) = nullptr;
  // Scores of one query become weights, in place.
  void (*weigh)(float* scores, int64_t count, const ScoreForm& form) = nullptr;
  // to[row * to_stride] = the sum of the values times the weights of the row, plus what is there if
  // `adds`.
  void (*mix_values)(const float* weights, int64_t weights_stride, int64_t rows,
                     const VectorRows& values, bool adds, float* to, int64_t to_stride) = nullptr;
  // Elements behind those that are rotated are copied. `to` may not overlap.
  void (*rotate)(const float* from, int64_t size, const VectorRotation& rotation,
                 float* to) = nullptr;
};

// For the best instruction set of this processor.
CachedAttentionLoops find_cached_attention_loops();

}  // namespace tessera::native
