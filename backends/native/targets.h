// The instruction sets that kernels choose among, for tests to limit.
#pragma once

#include <cstdint>

extern "C" {

// For tests, which find it by its name: of the processor's instruction sets only these (bits, as
// Highway has them) are used from here on; 0: all. Not while a kernel runs. Gives all that it has.
__attribute__((visibility("default"))) int64_t tessera_native_choose_targets(int64_t targets);

}  // extern "C"
