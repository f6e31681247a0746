// The sums of strassen.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

#include "base/activation.h"

namespace tessera::native {

// A row of each quarter of the left matrix, and where its sums go. Null: a row of zeros.
struct StrassenRow {
  const float* upper_left = nullptr;
  const float* upper_right = nullptr;
  const float* lower_left = nullptr;
  const float* lower_right = nullptr;
  float* sums[4] = {};
};

// to = activation(first + second + bias + addend), by element. `bias` and `addend` may be null;
// `to` may be any of the others.
struct StrassenSum {
  const float* first = nullptr;
  const float* second = nullptr;
  const float* bias = nullptr;
  const float* addend = nullptr;
  float* to = nullptr;
  Activation activation;
};

struct StrassenLoops {
  // sums[0] = lower_left + lower_right, sums[1] = sums[0] - upper_left,
  // sums[2] = upper_left - lower_left, sums[3] = upper_right - sums[1].
  void (*add_quarters)(const StrassenRow& row, int64_t count) = nullptr;
  void (*add)(const StrassenSum& sum, int64_t count) = nullptr;
};

// For the best instruction set of this processor.
StrassenLoops find_strassen_loops();

}  // namespace tessera::native
