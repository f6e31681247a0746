// The loops of arg_max.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// Which element of a line is selected. A NaN is selected over all numbers; among equal elements (or
// NaNs) the first one is, or the last one if `is_last`.
struct ArgRule {
  bool is_max = true;
  bool is_last = false;
};

struct ArgLoops {
  // The index of the selected one of `count` elements; count > 0.
  int64_t (*row)(const ArgRule& rule, const float* from, int64_t count);
  // Same as `row`, for `lines` neighbouring lines, each of `count` elements `stride` apart.
  void (*columns)(const ArgRule& rule, const float* from, int64_t count, int64_t stride,
                  int64_t lines, int64_t* to);
};

// For the best instruction set of this processor.
ArgLoops find_arg_loops();

}  // namespace tessera::native
