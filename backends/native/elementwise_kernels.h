// The loops of elementwise.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::native {

// to[i] = f(from[i]) for i in [0, count). `to` may be `from`.
using UnaryLoop = void (*)(const float* from, float* to, int64_t count);

// For the best instruction set of this processor. Null for an op that has no loop here.
UnaryLoop find_unary_loop(std::string_view op);

}  // namespace tessera::native
