// The instruction set of this processor, as one of the levels that compilers know by name.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::jit {

struct Target {
  std::string level = "x86-64-v4";           // or "x86-64-v3", "x86-64-v2"
  int vector_bytes = 64;                     // 64, 32 or 16
  int64_t cached_bytes = int64_t{16} << 20;  // size of tensors that fit into the last cache

  bool has_fused_multiply_add() const { return vector_bytes >= 32; }
  bool has_float16_conversions() const { return vector_bytes >= 32; }
  // Whether masked loads and stores of all types take one instruction.
  bool has_masks() const { return vector_bytes == 64; }
};

// The target of a level, with caches of a usual size.
Target target_of_level(const std::string& level);

// The highest level that this processor and its operating system support. Throws Failure
// (TESSERA_UNSUPPORTED) if it is below x86-64-v2, or of another architecture.
Target this_processor();

}  // namespace tessera::jit
