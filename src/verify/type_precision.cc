#include "verify/type_precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera::verification {
namespace {

double smallest_normal_of(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 0x1p-14;
    case DataType::BFloat16:
    case DataType::Float32:
      return 0x1p-126;
    default:
      return 0x1p-1022;
  }
}

}  // namespace

double largest_finite(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 65504;
    case DataType::BFloat16:
      return 0x1.fep127;
    case DataType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

double epsilon_of(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 0x1p-10;
    case DataType::BFloat16:
      return 0x1p-7;
    case DataType::Float32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

double ulp_of(DataType type, double x) {
  const double magnitude = std::max(std::fabs(x), smallest_normal_of(type));
  if (!std::isfinite(magnitude)) return std::numeric_limits<double>::infinity();
  // Below, the product might be denormal, which a thread that flushes denormals makes zero.
  if (magnitude < 0x1p-900) return std::ldexp(epsilon_of(type), std::ilogb(magnitude));
  // The power of two below: the same number without its fraction.
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1;
  return epsilon_of(type) * std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) & ~kFraction);
}

double flushed_magnitude_of(DataType type) {
  // Kernels compute in float32, where these are normal numbers.
  if (type == DataType::Float16) return 0;
  return 0x1p7 * smallest_normal_of(type);
}

}  // namespace tessera::verification
