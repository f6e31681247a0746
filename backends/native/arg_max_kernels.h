// The loops of arg_max.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// Which element of a line wins: the first NaN over all numbers; of equals (and NaNs) the first, or
// with `is_last` the last.
struct ArgRule {
  bool is_max = true;
  bool is_last = false;
};

struct ArgLoops {
  // The place of the winner among `count` elements, at least one.
  int64_t (*row)(const ArgRule& rule, const float* from, int64_t count);
  // The same for `lines` lines side by side, each of `count` elements `stride` apart.
  void (*columns)(const ArgRule& rule, const float* from, int64_t count, int64_t stride,
                  int64_t lines, int64_t* to);
};

// For the best instruction set of this processor.
ArgLoops find_arg_loops();

}  // namespace tessera::native
