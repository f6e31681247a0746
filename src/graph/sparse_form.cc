#include "graph/sparse_form.h"

namespace tessera {

std::string text(const SparseForm& form) {
  return std::string(name(form.format)) + ":" + std::to_string(form.capacity);
}

std::string density_bucket(int64_t stored, int64_t total) {
  constexpr int kSmallest = 9;
  if (stored == 0) return "0";
  // Integer arithmetic, so that the result is equal on every machine.
  int64_t bound = total;
  for (int exponent = 0; exponent < kSmallest; ++exponent) {
    if (stored >= bound)
      return "1e" + std::string(exponent == 0 ? "" : "-") + std::to_string(exponent);
    bound = bound / 10 + (bound % 10 == 0 ? 0 : 1);
  }
  return "1e-" + std::to_string(kSmallest);
}

}  // namespace tessera
