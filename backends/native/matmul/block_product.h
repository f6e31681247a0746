// Products of float32 rows by constant weights of few bits, which have a scale and a zero point for
// each block of a column.
#pragma once

#include <cstdint>

#include "matmul/block_product_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// The largest block that is added up at once: longer sums lose digits.
inline constexpr int64_t kMaxBlockWeights = 1024;

// The weights of [depth, columns], which are packed into panels of columns.
struct BlockWeights {
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t block = 0;  // weights; a power of two from 16 to kMaxBlockWeights
  int64_t bits = 0;   // 2, 4 or 8
  BlockZeros zeros = BlockZeros::None;

  int64_t blocks() const { return (depth + block - 1) / block; }
  int64_t words() const { return blocks() * (block * bits / 32); }  // of a column
};

struct BlockOperands {
  const float* left = nullptr;      // dense [rows, depth]
  const uint32_t* words = nullptr;  // packed
  const float* scales = nullptr;    // packed
  const void* zeros = nullptr;      // packed; null: there are none
  const float* bias = nullptr;      // [columns]; null: there is none
  float* to = nullptr;              // dense [rows, columns]
};

// How each of the weights' tensors is packed; they are [columns, blocks, bytes of a block],
// [columns, blocks] and [columns, blocks], or packed bits for BlockZeros::Bytes.
plugin::Pack block_words_pack(const BlockWeights& weights);
plugin::Pack block_scales_pack(const BlockWeights& weights);
plugin::Pack block_zeros_pack(const BlockWeights& weights);

// The workspace that run_block_product() needs with `threads` threads.
int64_t block_product_workspace_bytes(const BlockWeights& weights, int64_t rows, int64_t threads);

// Divides the product among at most `threads` threads. `workspace` has as many bytes as
// block_product_workspace_bytes() returns.
void run_block_product(plugin::RunContext& context, const BlockWeights& weights, int64_t rows,
                       int64_t threads, const BlockOperands& operands, void* workspace);

}  // namespace tessera::native
