// The loops of integer_kernels.h over some way to multiply, which the including file defines before
// it as functions of these types:
//   Weights load_weights(const int8_t* from);                 of one step and as many columns as
//                                                             there are lanes of int32
//   Left load_left(const uint8_t* from);                      the 4 bytes of a row, for all columns
//   Sums multiply_add(Sums sums, Left left, Weights weights);
// Included inside a namespace, once for each way and instruction set, so it has no include guard.

// Sums are held in 12 or 24 registers, besides the factors.
#if HWY_TARGET == HWY_SCALAR
constexpr int kIntegerRows = 2;
constexpr int kIntegerVectors = 4;
#elif HWY_CAP_GE512
constexpr int kIntegerRows = 6;
constexpr int kIntegerVectors = 4;
#elif HWY_CAP_GE256
constexpr int kIntegerRows = 6;
constexpr int kIntegerVectors = 2;
#else
constexpr int kIntegerRows = 4;
constexpr int kIntegerVectors = 2;
#endif

// The addresses of a run of some rows. Its positions among the addresses must not be computed in
// advance, because then the loop over the steps would not have enough registers.
template <int kCount>
HWY_INLINE void find_lines(const uint8_t* const* first, int64_t row_runs, const uint8_t** to) {
#if HWY_ARCH_X86
  asm volatile("" : "+r"(row_runs));
#endif
  for (int line = 0; line < kCount; ++line) to[line] = first[line * row_runs];
}

template <int kCount, int kUsed>
HWY_INLINE void multiply_rows(const IntegerBlock& block, int64_t row) {
  const SumTag d;
  const int64_t lanes = sum_lanes();
  Sums sums[kCount][kUsed];
  for (auto& line : sums) {
    for (Sums& sum : line) sum = hn::Zero(d);
  }
  const uint8_t* const* runs = block.left + row * block.runs;
  const int8_t* right = block.right;
  const int64_t step_bytes = kIntegerVectors * lanes * kElementsOfStep;
  const int64_t run_bytes = block.steps * kLeftStepBytes;
  for (int64_t run = 0; run < block.runs; ++run) {
    const uint8_t* left[kCount];
    find_lines<kCount>(runs + run, block.runs, left);
    for (int64_t at = 0; at < run_bytes; at += kLeftStepBytes, right += step_bytes) {
      Weights weights[kUsed];
      for (int vector = 0; vector < kUsed; ++vector) {
        weights[vector] = load_weights(right + vector * lanes * kElementsOfStep);
      }
      for (int line = 0; line < kCount; ++line) {
        const Left factor = load_left(left[line] + at);
        for (int vector = 0; vector < kUsed; ++vector) {
          sums[line][vector] = multiply_add(sums[line][vector], factor, weights[vector]);
        }
      }
    }
  }
  HWY_ALIGN int32_t stored[size_t{kCount} * size_t{kUsed} * hn::MaxLanes(d)];
  for (int line = 0; line < kCount; ++line) {
    for (int vector = 0; vector < kUsed; ++vector) {
      hn::Store(sums[line][vector], d, stored + (line * kUsed + vector) * lanes);
    }
  }
  store_sums(block, row, kCount, stored, kUsed * lanes);
}

template <int kUsed, int kCount = kIntegerRows>
HWY_INLINE void multiply_rest(const IntegerBlock& block, int64_t row, int64_t count) {
  if constexpr (kCount > 0) {
    if (count == kCount) return multiply_rows<kCount, kUsed>(block, row);
    multiply_rest<kUsed, kCount - 1>(block, row, count);
  }
}

template <int kUsed = kIntegerVectors>
void multiply_panel(const IntegerBlock& block) {
  if constexpr (kUsed > 1) {
    if (block.columns <= (kUsed - 1) * sum_lanes()) return multiply_panel<kUsed - 1>(block);
  }
  for (int64_t row = 0; row < block.rows;) {
    const int64_t left = block.rows - row;
    // One or two rows alone would wait for their own sums.
    const int64_t count = left > kIntegerRows && left < kIntegerRows + 3
                              ? left / 2
                              : std::min<int64_t>(kIntegerRows, left);
    multiply_rest<kUsed>(block, row, count);
    row += count;
  }
}

IntegerLoops loops_of_form() {
  return {.form = kLeftForm,
          .panel = kIntegerVectors * sum_lanes(),
          .multiply = multiply_panel<>,
          .copy = copy_left,
          .spread = spread_left,
          .sum = kSumLeft};
}
