// Which value of the last pass of reductions is kept for the pass that writes the results, so that
// it is not computed twice (softmax: exp of each element).
#pragma once

#include <optional>
#include <vector>

#include "expression_levels.h"

namespace tessera::jit {

struct KeptValue {
  size_t instruction = 0;
  // It has the type of this result, whose row can keep it until the result itself is written.
  size_t result = 0;
};

// Marks the instructions that the reduced loops must compute for instruction `id`. Stops at
// `known`, which is marked.
void mark_needed(const plugin::FusedGroup& group, const ExpressionLevels& levels, size_t id,
                 std::optional<size_t> known, std::vector<bool>& needed);

// A value only if rows have one loop along Lane, and if a store and a load cost less than the
// value.
std::optional<KeptValue> kept_value(const plugin::FusedGroup& group, const KernelShape& shape,
                                    const ExpressionLevels& levels);

}  // namespace tessera::jit
