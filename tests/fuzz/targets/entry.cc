// A fuzzer for the target that the build names.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::fuzzing::TESSERA_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
