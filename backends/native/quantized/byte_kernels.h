// The loops of kernels on quantised bytes, compiled for every instruction set that Highway
// supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// Two rows of bytes, which become a row of bytes.
struct BytePair {
  const void* left = nullptr;
  const void* right = nullptr;
  void* to = nullptr;  // may be one of the operands
  int64_t count = 0;
  bool has_one_left = false;  // one element for all results; at most one of the two
  bool has_one_right = false;
};

// What the bytes of two operands and of the result stand for.
struct PairScales {
  int32_t left_zero = 0;
  int32_t right_zero = 0;
  int32_t zero = 0;
  int32_t lowest = 0;  // limits of the result
  int32_t highest = 0;
  // Of exact loops: real numbers are multiplied by these, and results are divided by `scale`, each
  // rounded to float32, as DequantizeLinear and QuantizeLinear do.
  // Of others: results are integers times these (sums), or products times `scale`.
  float left_scale = 1;
  float right_scale = 1;
  float scale = 1;
};

using PairLoop = void (*)(const BytePair& pair, const PairScales& scales);

enum class PairOp : uint8_t { Add, Mul, ExactAdd, ExactMul };

// `data_type`: TESSERA_INT8 or TESSERA_UINT8, that of all three rows.
PairLoop find_pair_loop(PairOp op, int32_t data_type);

// to[i] = table[from[i]]; `to` may be `from`.
using ByteMap = void (*)(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t count);
ByteMap find_byte_map();

// One tap of the windows of `count` neighbouring outputs: the maximum with, or the sum of, the
// elements from[i * stride]. Zero points are subtracted from the terms of sums.
struct ByteTap {
  const void* from = nullptr;
  int64_t stride = 1;
  int64_t count = 0;
  int32_t zero = 0;
};
using MaxTap = void (*)(const ByteTap& tap, void* maxima);
using SumTap = void (*)(const ByteTap& tap, int32_t* sums);
// The sum of the elements from[0] to from[count - 1].
using ByteSum = int64_t (*)(const ByteTap& tap);

// The bytes for integers: the number times `factor`, to the nearest, ties to even, plus the zero
// point, within limits.
struct Rescaling {
  float factor = 1;
  int32_t zero = 0;
  int32_t lowest = 0;
  int32_t highest = 0;
};
using Rescale = void (*)(const int32_t* from, const Rescaling& rescaling, void* to, int64_t count);

// A row of bytes as probabilities. `powers` has exp(-distance * scale) for each distance from the
// largest element; rescaling.factor is one over the scale of the result.
using ByteSoftmax = void (*)(const void* from, const float* powers, const Rescaling& rescaling,
                             void* to, int64_t count);

// The range of numbers and 0. NaN is ignored.
struct NumberRange {
  float lowest = 0;
  float highest = 0;
};
using RangeLoop = NumberRange (*)(const float* from, int64_t count);
RangeLoop find_range_loop();

struct ByteLoops {
  MaxTap max_tap = nullptr;
  SumTap sum_tap = nullptr;
  ByteSum sum = nullptr;
  Rescale rescale = nullptr;
  ByteSoftmax softmax = nullptr;
};
ByteLoops find_byte_loops(int32_t data_type);

}  // namespace tessera::native
