// A sum that keeps what its additions lose to rounding.
#pragma once

#include <cmath>
#include <type_traits>

namespace tessera::native {

// Knuth's two-sum (The Art of Computer Programming 2, 4.2.2), so that errors do not grow with the
// number of elements. Integers lose nothing.
template <class A>
struct CompensatedSum {
  A sum = 0;
  A lost = 0;
  void add_wide(A x) {
    const A total = sum + x;
    if constexpr (std::is_floating_point_v<A>) {
      const A part = total - sum;
      lost += (sum - (total - part)) + (x - part);
    }
    sum = total;
  }
  // If the sum is infinite, `lost` is NaN and is not added.
  A total() const {
    if constexpr (std::is_floating_point_v<A>) return std::isfinite(lost) ? sum + lost : sum;
    return sum;
  }
};

}  // namespace tessera::native
