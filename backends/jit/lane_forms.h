// How many vectors a loop along Lane computes in an iteration. Vectors do not depend on each other,
// so the more of them there are, the less each operation waits for the one before it; but each
// costs registers and time to compile.
#pragma once

#include <vector>

#include "processor.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// One form of a loop along Lane. The loops of all forms follow each other: each processes the
// points that the previous one left over.
struct LaneForm {
  int vectors = 1;
  bool is_masked = false;  // the lanes behind the end of the row are left out
};

// The size of the computation in the body of a loop.
struct LoopBody {
  int instructions = 0;   // that compute vectors
  int critical_path = 0;  // the largest number of them that wait for each other
  int live_values = 0;    // the largest number of vectors that are needed later at one time
};

// The body that consists of the instructions whose `is_in_body` is true.
LoopBody loop_body(const plugin::FusedGroup& group, const std::vector<bool>& is_in_body);

// The forms, the fastest first; the last one is masked. `is_around_reductions`: the body contains
// loops, in which each vector has accumulators.
std::vector<LaneForm> lane_forms(const LoopBody& body, bool is_around_reductions,
                                 const Target& target);

}  // namespace tessera::jit
