// Numbers too small for a normal exponent, and what a processor makes of them.
#pragma once

#include <cstdint>

namespace tessera {

enum class Denormals : uint8_t {
  Keep,   // as IEEE 754 says; some processors take a hundred cycles more for each
  Flush,  // read and written as zero
};

// Sets the calling thread's rule while it lives, and then the one from before again. Keep leaves
// the thread as it is. Processors other than x86-64 and arm64 have no rule to set.
class DenormalRule {
 public:
  explicit DenormalRule(Denormals wanted);
  ~DenormalRule();
  DenormalRule(const DenormalRule&) = delete;
  DenormalRule& operator=(const DenormalRule&) = delete;

 private:
  uint64_t before_ = 0;
  bool is_changed_ = false;
};

}  // namespace tessera
