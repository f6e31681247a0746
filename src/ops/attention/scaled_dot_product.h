// Scaled dot-product attention, which the ops of this folder have in common: Vaswani et al., 2017,
// https://arxiv.org/abs/1706.03762, section 3.2.1. Products and weights are double.
#pragma once

#include <cstdint>
#include <span>

#include "base/threads/function_ref.h"
#include "ops/attention/heads.h"
#include "ops/op.h"

namespace tessera::ops {

struct AttentionProblem {
  int64_t batch = 0;
  int64_t query_heads = 0;  // a multiple of key_heads: each group of them shares a head of keys
  int64_t key_heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_size = 0;
  int64_t value_size = 0;
  double scale = 1;
  HeadView query;
  HeadSequence key;
  HeadSequence value;
  MutableHeadView output = {};
};

// The scores of one query for all keys.
struct ScoreRow {
  int64_t batch = 0;
  int64_t head = 0;  // of queries
  int64_t query = 0;
  std::span<double> scores;
};

// Turns the scaled products of a query and all keys into weights of the values, in place. Must be
// thread-safe.
using Weigh = FunctionRef<void(const ScoreRow& row)>;

// Rows of scores that fit in memory at once: `queries` from `first_query` on, of `heads` heads from
// `first_head` on. Heads are counted over all batches.
struct ScoreBlock {
  int64_t first_head = 0;
  int64_t heads = 0;
  int64_t first_query = 0;
  int64_t queries = 0;
};

// Computes the whole attention, block by block. `call` gives threads and memory. The result does
// not depend on the number of threads.
void attend(const KernelCall& call, const AttentionProblem& problem, Weigh weigh);

// Calls visit(block, scores) for blocks that cover all rows; `scores` is memory for those of the
// block, row by row.
void for_each_score_block(const KernelCall& call, const AttentionProblem& problem,
                          FunctionRef<void(const ScoreBlock& block, double* scores)> visit);
// The two products of such a block.
void multiply_by_keys(const KernelCall& call, const AttentionProblem& problem,
                      const ScoreBlock& block, double* scores);
void multiply_by_values(const KernelCall& call, const AttentionProblem& problem,
                        const ScoreBlock& block, const double* weights);
// Calls visit(row) for each row of a block, in parallel.
void for_each_row(const KernelCall& call, const AttentionProblem& problem, const ScoreBlock& block,
                  double* scores, Weigh visit);

// The scale of products if a node gives none: 1 / sqrt(head_size). Vectors without elements have
// products of 0, whatever the scale.
double default_scale(int64_t head_size);

// --- Parts of weigh() ----------------------------------------------------------------------------

// cap * tanh(score / cap). Nothing if `cap` is 0.
void cap_scores(std::span<double> scores, double cap);

// Softmax. `sink` is the score of one more key, without a value; -infinity: there is none. If all
// scores and the sink are -infinity, the weights are NaN.
void softmax_in_place(std::span<double> scores, double sink);
void softmax_in_place(std::span<double> scores);

// Rounds to the nearest numbers of a floating type. Nothing if it is Undefined.
void round_to_type(std::span<double> numbers, DataType type);

// The type to which scores are rounded before the softmax, and weights after it, because a node
// with operands of `type` asks for one that has not all of their numbers; else Undefined, so that
// nothing is rounded twice.
DataType softmax_rounding(DataType type, DataType wanted);

// Writes a row to a tensor [batch, heads, queries, keys].
void store_row(const ScoreRow& row, const MutableTensorView& tensor);

// A multiply-add for each element of a vector, of both products, counted for `keys` keys: of nodes
// whose first output has an element for each query, head and element of a value.
int64_t attention_flops_of(std::span<const Type> outputs, const Dim& keys);

}  // namespace tessera::ops
