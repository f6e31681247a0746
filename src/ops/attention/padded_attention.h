// What the attention ops of com.microsoft have in common: masks of padding as integers, and a bias
// of the scores.
#pragma once

#include <cstdint>
#include <string>

#include "ops/attention/heads.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/op.h"

namespace tessera::ops {

inline constexpr TypeSet kHeadTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32};

// --- Type rules ----------------------------------------------------------------------------------

struct ScoreDims {
  Dim batch;
  Dim heads;
  Dim queries;
  Dim keys;  // those of the cache, too
};

// fail()s unless the attribute is at least 1. Returns it.
int64_t required_heads(const InferContext& context, const char* attribute);

// fail_input()s unless a mask has one of these shapes: [batch]: each sequence's number of keys;
// [2 * batch]: the ends, then the starts of the keys; [3 * batch + 2]: as [batch], and more that
// is not read; [batch, keys], [batch, queries, keys]: 0 masks a key. [batch, 1] masks none.
void check_padding_mask(const InferContext& context, size_t index, const ScoreDims& dims);

// fail_input()s unless the bias has 4 dimensions that broadcast to [batch, heads, queries, keys].
void check_score_bias(const InferContext& context, size_t index, const ScoreDims& dims);

// --- Kernels -------------------------------------------------------------------------------------

// A bias of the scores that is broadcast along batches and heads, or none.
struct ScoreBias {
  const TensorView* tensor = nullptr;

  void add_to(const ScoreRow& row) const;
};

// The mask of a call.
struct PaddingMask {
  const TensorView* tensor = nullptr;  // null: none
  double filter = 0;                   // what is added to scores of masked keys
  int64_t starts = 0;                  // where the starts begin; 0: there are none

  void add_to(const ScoreRow& row) const;
};

// All that decides the weights of a row.
struct PaddedAttention {
  PaddingMask mask;
  ScoreBias bias;
  bool is_causal = false;
  int64_t past = 0;                           // positions before the first query, for is_causal
  const MutableTensorView* scores = nullptr;  // receives the scores before the softmax

  void weigh(const ScoreRow& row) const;
};

// The mask of input `index`, the bias of input `bias`, and the node's attributes.
PaddedAttention padded_attention(const KernelCall& call, size_t mask, size_t bias);

// The attribute "scale", or if it is 0 or omitted, the default.
double scale_or_default(const Node& node, int64_t head_size);

}  // namespace tessera::ops
