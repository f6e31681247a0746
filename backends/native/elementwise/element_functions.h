// Scalar functions of elements of any type, as ONNX defines them; the generic loops apply them.
// Integers are computed as unsigned ones, so that they wrap around without undefined behaviour.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/backend.h"

namespace tessera::native::element {

template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

struct Add {
  template <class T>
  static T of(T left, T right) {
    return static_cast<T>(static_cast<Wide<T>>(left) + static_cast<Wide<T>>(right));
  }
};

struct Sub {
  template <class T>
  static T of(T left, T right) {
    return static_cast<T>(static_cast<Wide<T>>(left) - static_cast<Wide<T>>(right));
  }
};

struct Mul {
  template <class T>
  static T of(T left, T right) {
    return static_cast<T>(static_cast<Wide<T>>(left) * static_cast<Wide<T>>(right));
  }
};

inline void check_divisor(bool is_zero) {
  if (!is_zero) return;
  throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                        "expected divisors other than zero for integers, found 0");
}

// Whether the divisor is -1: besides x / 0, the quotient lowest / -1 is the only one at which the
// processor traps.
template <class T>
bool is_minus_one(T value) {
  return std::is_signed_v<T> && value == static_cast<T>(-1);
}

struct Div {
  template <class T>
  static T of(T left, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      return left / right;
    } else {
      check_divisor(right == 0);
      if (is_minus_one(right)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(left));
      return static_cast<T>(left / right);
    }
  }
};

// std::fmod(), which subtracts bit by bit. If the quotient has 29 bits or less, its whole part
// times `right` has the 53 bits of a double, so the difference is exact; the quotient may have been
// rounded up to a whole number.
inline float remainder_of(float left, float right) {
  const double quotient = double{left} / double{right};
  if (!(std::fabs(quotient) < 0x1p29)) return std::fmod(left, right);
  const auto whole = static_cast<int32_t>(quotient);
  if (whole == 0) return left;
  double rest = double{left} - whole * double{right};
  const bool is_beyond = left < 0 ? rest > 0 : rest < 0;
  if (is_beyond) rest += std::copysign(double{right}, double{left});
  return std::copysign(static_cast<float>(rest), left);
}
inline double remainder_of(double left, double right) { return std::fmod(left, right); }

// The remainder of division that rounds down: it has the sign of the divisor.
struct FloorMod {
  template <class T>
  static T of(T left, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      const T remainder = remainder_of(left, right);
      if (remainder == 0) return std::copysign(remainder, right);
      return (remainder < 0) == (right < 0) ? remainder : remainder + right;
    } else {
      check_divisor(right == 0);
      if (is_minus_one(right)) return 0;
      const auto remainder = static_cast<T>(left % right);
      if (remainder == 0 || (remainder < 0) == (right < 0)) return remainder;
      return static_cast<T>(remainder + right);
    }
  }
};

// The remainder of division that rounds towards zero: it has the sign of the dividend.
struct TruncatedMod {
  template <class T>
  static T of(T left, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      return remainder_of(left, right);
    } else {
      check_divisor(right == 0);
      return is_minus_one(right) ? T{0} : static_cast<T>(left % right);
    }
  }
};

struct Pow {
  static float of(float base, float exponent) {
    return static_cast<float>(of(static_cast<double>(base), static_cast<double>(exponent)));
  }
  static double of(double base, double exponent) {
    return exponent == 2 ? base * base : std::pow(base, exponent);
  }
  // If the exponent is not negative, the result is modulo 2^bits; else its fraction is cut off. A
  // power of zero that would be infinite is the largest integer, as when infinity is cast.
  template <class T>
  static T of(T base, T exponent) {
    if (exponent < 0) {
      if (base == 0) return static_cast<T>(std::numeric_limits<int64_t>::max());
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return base == 1 ? 1 : 0;
    }
    uint64_t result = 1;
    auto square = static_cast<uint64_t>(base);
    for (T rest = exponent; rest > 0; rest /= 2, square *= square) {
      if (rest % 2 != 0) result *= square;
    }
    return static_cast<T>(result);
  }
};

// NaN if either is NaN. Written so that a compiler needs no branches.
struct Min {
  template <class T>
  static T of(T left, T right) {
    const bool is_right = static_cast<int>(right < left) | static_cast<int>(right != right);
    return left != left ? left : is_right ? right : left;
  }
};

struct Max {
  template <class T>
  static T of(T left, T right) {
    const bool is_right = static_cast<int>(right > left) | static_cast<int>(right != right);
    return left != left ? left : is_right ? right : left;
  }
};

// The bounds of Clip: NaN stays NaN, and a bound of NaN makes every result NaN.
struct ClipMin {
  template <class T>
  static T of(T x, T bound) {
    const bool is_bound = static_cast<int>(x < bound) | static_cast<int>(bound != bound);
    return is_bound ? bound : x;
  }
};

struct ClipMax {
  template <class T>
  static T of(T x, T bound) {
    const bool is_bound = static_cast<int>(x > bound) | static_cast<int>(bound != bound);
    return is_bound ? bound : x;
  }
};

struct PRelu {
  template <class T>
  static T of(T x, T slope) {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      // Not x < 0: if the slope is NaN, the result for 0 is NaN too.
      return x > 0 ? x : Mul::of(x, slope);
    }
  }
};

struct Equal {
  template <class T>
  static uint8_t of(T left, T right) {
    return static_cast<uint8_t>(left == right);
  }
};

struct Less {
  template <class T>
  static uint8_t of(T left, T right) {
    return static_cast<uint8_t>(left < right);
  }
};

struct LessOrEqual {
  template <class T>
  static uint8_t of(T left, T right) {
    return static_cast<uint8_t>(left <= right);
  }
};

// Bools are bytes, which may have other values than 0 and 1 in a damaged file.
struct And {
  static uint8_t of(uint8_t left, uint8_t right) {
    return static_cast<uint8_t>(static_cast<int>(left != 0) & static_cast<int>(right != 0));
  }
};

struct Or {
  static uint8_t of(uint8_t left, uint8_t right) {
    return static_cast<uint8_t>((left | right) != 0);
  }
};

struct Xor {
  static uint8_t of(uint8_t left, uint8_t right) {
    return static_cast<uint8_t>((left != 0) != (right != 0));
  }
};

struct Xnor {
  static uint8_t of(uint8_t left, uint8_t right) {
    return static_cast<uint8_t>((left != 0) == (right != 0));
  }
};

struct BitwiseAnd {
  template <class T>
  static T of(T left, T right) {
    return left & right;
  }
};

struct BitwiseOr {
  template <class T>
  static T of(T left, T right) {
    return left | right;
  }
};

struct BitwiseXor {
  template <class T>
  static T of(T left, T right) {
    return left ^ right;
  }
};

// A count that is negative or too large shifts out all bits: the result is 0, or -1 for a negative
// number shifted to the right.
template <class T>
bool is_within_bits(T count) {
  return count >= 0 && static_cast<uint64_t>(count) < 8 * sizeof(T);
}

struct ShiftLeft {
  template <class T>
  static T of(T left, T right) {
    if (!is_within_bits(right)) return 0;
    return static_cast<T>(static_cast<uint64_t>(left) << right);
  }
};

struct ShiftRight {
  template <class T>
  static T of(T left, T right) {
    if (!is_within_bits(right)) return static_cast<T>(left < 0 ? -1 : 0);
    return static_cast<T>(left >> right);
  }
};

// --- Unary functions -----------------------------------------------------------------------------

struct Not {
  static uint8_t of(uint8_t x, const auto&) { return static_cast<uint8_t>(x == 0); }
};

struct IsNaN {
  template <class T>
  static uint8_t of(T x, const auto&) {
    return static_cast<uint8_t>(x != x);
  }
};

// parameters.alpha: whether negative infinity counts; beta: whether positive infinity does.
struct IsInf {
  template <class T>
  static uint8_t of(T x, const auto& parameters) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const int is_negative = static_cast<int>(x == -kInfinity) & (parameters.alpha != 0 ? 1 : 0);
    const int is_positive = static_cast<int>(x == kInfinity) & (parameters.beta != 0 ? 1 : 0);
    return static_cast<uint8_t>(is_negative | is_positive);
  }
};

struct Neg {
  template <class T>
  static T of(T x, const auto&) {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
    }
  }
};

struct Abs {
  template <class T>
  static T of(T x, const auto& parameters) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_signed_v<T>) {
      return x < 0 ? Neg::of(x, parameters) : x;
    } else {
      return x;
    }
  }
};

struct Sign {
  template <class T>
  static T of(T x, const auto&) {
    if constexpr (std::is_floating_point_v<T>) {
      return x > 0 ? T{1} : x < 0 ? T{-1} : x;
    } else {
      return static_cast<T>((x > 0 ? 1 : 0) - (x < 0 ? 1 : 0));
    }
  }
};

struct Relu {
  template <class T>
  static T of(T x, const auto&) {
    return x < 0 ? T{0} : x;
  }
};

struct BitwiseNot {
  template <class T>
  static T of(T x, const auto&) {
    return static_cast<T>(~static_cast<uint64_t>(x));
  }
};

}  // namespace tessera::native::element
