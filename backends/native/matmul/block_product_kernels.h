// The loops of products of float32 rows by weights of 2, 4 or 8 bits, compiled for every
// instruction set that Highway supports. Weights become float32 in registers.
#pragma once

#include <cstdint>

namespace tessera::native {

// How the zero points of blocks are stored.
enum class BlockZeros : uint8_t {
  None,   // all are half of the range: 2, 8 or 128
  Bytes,  // uint8
  Numbers
};

// Some rows by the columns of one panel, which is as wide as a panel of GemmLoops. A word has the
// 32 / bits weights of one column that follow one another, the first one in the lowest bits.
struct BlockPart {
  const float* left = nullptr;
  int64_t left_row_stride = 0;
  int64_t rows = 0;
  const uint32_t* words = nullptr;  // [words of the depth, panel]
  const float* scales = nullptr;    // [blocks, panel]
  const void* zeros = nullptr;      // the same
  int64_t block = 0;                // weights of a block: whole words
  int64_t depth = 0;                // the last block may have fewer weights
  int64_t columns = 0;              // at most those of a panel
  const float* bias = nullptr;      // by column; null: none
  float* to = nullptr;
  int64_t to_row_stride = 0;
};

struct BlockLoops {
  // to = left * weights + bias, for any number of rows, each of which reads all weights.
  void (*multiply)(const BlockPart& part) = nullptr;
  // to = weights: [depth, panel], whose rows are neighbours. `left` and `bias` do not count.
  void (*unpack)(const BlockPart& part) = nullptr;
};

// For the best instruction set of this processor; `bits` is 2, 4 or 8.
BlockLoops find_block_loops(int64_t bits, BlockZeros zeros);

}  // namespace tessera::native
