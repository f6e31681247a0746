// How the processor treats denormal (subnormal) numbers.
#pragma once

#include <cstdint>

namespace tessera {

enum class Denormals : uint8_t {
  Keep,   // IEEE 754; some processors need a hundred more cycles for each
  Flush,  // treat as zero when read and when written
};

// Sets the rule of the calling thread; the destructor restores the previous rule. Keep does not
// change the thread's rule. Has no effect on processors other than x86-64 and arm64.
class ScopedDenormals {
 public:
  explicit ScopedDenormals(Denormals wanted);
  ~ScopedDenormals();
  ScopedDenormals(const ScopedDenormals&) = delete;
  ScopedDenormals& operator=(const ScopedDenormals&) = delete;

 private:
  uint64_t before_ = 0;
  bool is_changed_ = false;
};

}  // namespace tessera
