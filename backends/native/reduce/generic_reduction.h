// Reductions of element types other than float32, in row-major order: correct rather than fast,
// because such tensors are small (sizes, indices, masks).
#pragma once

#include <cstdint>
#include <string_view>

#include "reduce/reduced_axes.h"
#include "tessera/backend.h"

namespace tessera::native {

// Reduces elements of the type for which it was found.
using GenericReduction = void (*)(plugin::RunContext& context, ReducedAxes axes, const void* from,
                                  void* to);

// Null if an op of the Reduce family has no reduction for this data type.
GenericReduction find_generic_reduction(std::string_view op, int32_t data_type);

}  // namespace tessera::native
