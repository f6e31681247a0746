// Reductions of element types other than float32, in row-major order: right rather than fast, as
// such tensors are small (sizes, indices, masks).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reduction.h"
#include "tessera/backend.h"

namespace tessera::native {

// from and to are elements of the type that it was found for.
using PlainReduction = void (*)(plugin::RunContext& context, const std::vector<ReducedAxis>& axes,
                                const void* from, void* to);

// Null where an op of the Reduce family has none for this data type.
PlainReduction find_plain_reduction(std::string_view op, int32_t data_type);

}  // namespace tessera::native
