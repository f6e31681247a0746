// Computes expressions instruction by instruction: the judge of compiled kernels in tests, which
// shares no code with the printers. Not fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/expression/expression.h"
#include "tessera/backend_fusion.h"

namespace tessera::codegen {

// The elements of one value at some points, each in the lowest bytes.
using Column = std::vector<uint64_t>;

// The values of `results` at all points. `operands[i]` has, for each point, what Operand i reads.
// Each `row_points` consecutive points differ along the reduced axes only; their number is a
// multiple of it. Sums and products of floats are accumulated in order, in float64; sums keep what
// their additions lose, as those of the reference do.
// The instructions must keep the rules (explain_violation()).
std::vector<Column> evaluate(const Instructions& instructions,
                             std::span<const InstructionId> results,
                             std::span<const Column> operands, int64_t row_points = 1);

// Computes a group. `inputs` and `outputs` are row-major tensors in the order of the group's ports.
void evaluate_group(const plugin::FusedGroup& group, std::span<const void* const> inputs,
                    std::span<void* const> outputs);

}  // namespace tessera::codegen
