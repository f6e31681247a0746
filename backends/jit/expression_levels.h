// Where each instruction of a group is computed: in which loop, and for one lane or all.
#pragma once

#include <vector>

#include "kernel_loops.h"

namespace tessera::jit {

// The loops of a kernel from the outermost to the innermost have the positions 0, 1, ...; what is
// the same for all points has position -1.
struct ExpressionLevels {
  std::vector<Loop> kept_loops;     // the outermost first
  std::vector<Loop> reduced_loops;  // inside of the kept ones
  int passes = 0;                   // over the reduced loops, before whole results are written

  // For each instruction:
  std::vector<int> position;      // of the innermost loop along which it varies
  std::vector<bool> is_vector;    // it varies along Lane
  std::vector<bool> is_reduced;   // it varies along a reduced loop
  std::vector<bool> needs_splat;  // it does not vary along Lane, but something needs all lanes
  std::vector<int> depth;         // plugin::reduction_depths()

  int position_of(Loop loop) const;
  bool is_lane_kept() const { return kept_loops.back() == kLane; }
};

// Whether a result is written at all points of the reduced loops, not once for all of them.
bool is_written_everywhere(const KernelShape& shape, size_t access);

// Whether the value, known after the reductions of its depth, is read later: at the points of
// reduced loops, after other reductions, or as a result.
bool is_used_later(const plugin::FusedGroup& group, const ExpressionLevels& levels, size_t id);

// Throws Failure (TESSERA_INTERNAL) if the group breaks a rule of tessera/backend_fusion_abi.h on
// which loops depend.
ExpressionLevels expression_levels(const plugin::FusedGroup& group, const KernelShape& shape);

}  // namespace tessera::jit
