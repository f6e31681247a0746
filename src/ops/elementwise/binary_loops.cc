#include "ops/elementwise/binary_loops.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <type_traits>

#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// Each function has of(left, right, call), for the types that its selection below gives it. Integer
// arithmetic uses uint64_t, where wrap-around is defined for every width.

struct Add {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    if constexpr (std::is_floating_point_v<T>) return left + right;
    return static_cast<T>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
  }
};

struct Sub {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    if constexpr (std::is_floating_point_v<T>) return left - right;
    return static_cast<T>(static_cast<uint64_t>(left) - static_cast<uint64_t>(right));
  }
};

struct Mul {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    if constexpr (std::is_floating_point_v<T>) return left * right;
    return static_cast<T>(static_cast<uint64_t>(left) * static_cast<uint64_t>(right));
  }
};

[[noreturn]] void fail_zero(const KernelCall& call) {
  call.fail("expected divisors other than zero for integers, found 0");
}

// Whether left / right is minimum / -1, which overflows and traps on some processors.
template <class T>
bool is_minus_one(T value) {
  return std::is_signed_v<T> && value == static_cast<T>(-1);
}

struct Div {
  template <class T>
  static T of(T left, T right, const KernelCall& call) {
    if constexpr (std::is_floating_point_v<T>) {
      return left / right;
    } else {
      if (right == 0) fail_zero(call);
      if (is_minus_one(right)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(left));
      return static_cast<T>(left / right);
    }
  }
};

// The remainder of floored division: it has the sign of the divisor.
struct FloorMod {
  template <class T>
  static T of(T left, T right, const KernelCall& call) {
    if constexpr (std::is_floating_point_v<T>) {
      const T remainder = std::fmod(left, right);
      if (remainder == 0) return std::copysign(remainder, right);
      return (remainder < 0) == (right < 0) ? remainder : remainder + right;
    } else {
      if (right == 0) fail_zero(call);
      if (is_minus_one(right)) return 0;
      const auto remainder = static_cast<T>(left % right);
      if (remainder == 0 || (remainder < 0) == (right < 0)) return remainder;
      return static_cast<T>(remainder + right);
    }
  }
};

// The remainder of truncated division: it has the sign of the dividend.
struct TruncatedMod {
  template <class T>
  static T of(T left, T right, const KernelCall& call) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(left, right);
    } else {
      if (right == 0) fail_zero(call);
      return is_minus_one(right) ? T{0} : static_cast<T>(left % right);
    }
  }
};

struct Pow {
  static double of(double base, double exponent, const KernelCall&) {
    return exponent == 2 ? base * base : std::pow(base, exponent);
  }
  // Exact modulo 2^64 if the exponent is not negative; else the result is truncated. A power of
  // zero that would be infinite gives the largest number, as a cast of infinity does.
  static int64_t of(int64_t base, int64_t exponent, const KernelCall&) {
    if (exponent < 0) {
      if (base == 0) return std::numeric_limits<int64_t>::max();
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return base == 1 ? 1 : 0;
    }
    uint64_t result = 1;
    auto square = static_cast<uint64_t>(base);
    for (; exponent > 0; exponent /= 2, square *= square) {
      if (exponent % 2 != 0) result *= square;
    }
    return static_cast<int64_t>(result);
  }
};

struct Equal {
  template <class T>
  static uint8_t of(T left, T right, const KernelCall&) {
    return left == right;
  }
};

struct Less {
  template <class T>
  static uint8_t of(T left, T right, const KernelCall&) {
    return left < right;
  }
};

struct LessOrEqual {
  template <class T>
  static uint8_t of(T left, T right, const KernelCall&) {
    return left <= right;
  }
};

struct Greater {
  template <class T>
  static uint8_t of(T left, T right, const KernelCall&) {
    return left > right;
  }
};

struct GreaterOrEqual {
  template <class T>
  static uint8_t of(T left, T right, const KernelCall&) {
    return left >= right;
  }
};

// Bools are bytes: a corrupt file may contain other values than 0 and 1.
struct And {
  static uint8_t of(uint8_t left, uint8_t right, const KernelCall&) {
    return left != 0 && right != 0;
  }
};

struct Or {
  static uint8_t of(uint8_t left, uint8_t right, const KernelCall&) {
    return left != 0 || right != 0;
  }
};

struct Xor {
  static uint8_t of(uint8_t left, uint8_t right, const KernelCall&) {
    return (left != 0) != (right != 0);
  }
};

struct SameTruth {
  static uint8_t of(uint8_t left, uint8_t right, const KernelCall&) {
    return (left != 0) == (right != 0);
  }
};

struct BitwiseAnd {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    return left & right;
  }
};

struct BitwiseOr {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    return left | right;
  }
};

struct BitwiseXor {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    return left ^ right;
  }
};

// If the shift count is negative or at least the width, the result consists of sign bits.
template <class T>
bool is_within_bits(T count) {
  return count >= 0 && static_cast<uint64_t>(count) < 8 * sizeof(T);
}

struct ShiftLeft {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    if (!is_within_bits(right)) return 0;
    return static_cast<T>(static_cast<uint64_t>(left) << right);
  }
};

struct ShiftRight {
  template <class T>
  static T of(T left, T right, const KernelCall&) {
    if (!is_within_bits(right)) return static_cast<T>(left < 0 ? -1 : 0);
    return static_cast<T>(left >> right);
  }
};

template <class T, class Result, class Function>
void run_loop(const KernelCall& call, const BroadcastSpan& stretch) {
  const T* left = static_cast<const T*>(stretch.left);
  const T* right = static_cast<const T*>(stretch.right);
  Result* result = static_cast<Result*>(stretch.result);
  if (stretch.left_step == 1 && stretch.right_step == 1) {
    // A loop of its own, because the compiler can vectorise it.
    for (int64_t index = 0; index < stretch.count; ++index) {
      result[index] = Function::of(left[index], right[index], call);
    }
    return;
  }
  for (int64_t index = 0; index < stretch.count; ++index) {
    result[index] =
        Function::of(left[index * stretch.left_step], right[index * stretch.right_step], call);
  }
}

template <class Function>
Computation on_floats(DataType type) {
  if (type == DataType::Float64) return {type, type, run_loop<double, double, Function>};
  return {DataType::Float32, DataType::Float32, run_loop<float, float, Function>};
}

// One loop for signed and unsigned integers of a size, for functions that give the same bits for
// both.
template <class Function>
Computation on_bits(DataType type) {
  Computation computation = {type, type, nullptr};
  visit_size(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    computation.loop = run_loop<T, T, Function>;
  });
  return computation;
}

template <class Function>
Computation on_integers(DataType type) {
  Computation computation = {type, type, nullptr};
  visit_integer(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    computation.loop = run_loop<T, T, Function>;
  });
  return computation;
}

template <class Function>
Computation on_bools() {
  return {DataType::Bool, DataType::Bool, run_loop<uint8_t, uint8_t, Function>};
}

template <class Function>
Computation question_on_floats(DataType type) {
  if (type == DataType::Float64) {
    return {type, DataType::Bool, run_loop<double, uint8_t, Function>};
  }
  return {DataType::Float32, DataType::Bool, run_loop<float, uint8_t, Function>};
}

// The computations by element type. `right` has the same type except for Pow.
template <class Function>
Computation wrapping(const Node&, DataType left, DataType) {
  return is_floating(left) ? on_floats<Function>(left) : on_bits<Function>(left);
}

template <class Function>
Computation bits(const Node&, DataType left, DataType) {
  return on_bits<Function>(left);
}

template <class Function>
Computation truth(const Node&, DataType, DataType) {
  return on_bools<Function>();
}

template <class Function>
Computation order(const Node&, DataType left, DataType) {
  if (is_floating(left)) return question_on_floats<Function>(left);
  Computation computation = {left, DataType::Bool, nullptr};
  visit_integer(left, [&](auto tag) {
    using T = typename decltype(tag)::type;
    computation.loop = run_loop<T, uint8_t, Function>;
  });
  return computation;
}

Computation equality(const Node&, DataType left, DataType) {
  if (left == DataType::Bool) return on_bools<SameTruth>();
  if (is_floating(left)) return question_on_floats<Equal>(left);
  Computation computation = {left, DataType::Bool, nullptr};
  visit_size(left, [&](auto tag) {
    using T = typename decltype(tag)::type;
    computation.loop = run_loop<T, uint8_t, Equal>;
  });
  return computation;
}

template <class Function>
Computation quotient(const Node&, DataType left, DataType) {
  return is_floating(left) ? on_floats<Function>(left) : on_integers<Function>(left);
}

Computation modulus(const Node& node, DataType left, DataType right) {
  return node.attributes.get_int("fmod") != 0 ? quotient<TruncatedMod>(node, left, right)
                                              : quotient<FloorMod>(node, left, right);
}

Computation power(const Node&, DataType left, DataType right) {
  if (is_integer(left) && is_integer(right)) {
    return {DataType::Int64, DataType::Int64, run_loop<int64_t, int64_t, Pow>};
  }
  return {DataType::Float64, DataType::Float64, run_loop<double, double, Pow>};
}

Computation shift(const Node& node, DataType left, DataType) {
  return node.attributes.get_string("direction") == "LEFT" ? on_integers<ShiftLeft>(left)
                                                           : on_integers<ShiftRight>(left);
}

using Choose = Computation (*)(const Node& node, DataType left, DataType right);

const std::map<std::string, Choose> kChoices = {
    {"Add", wrapping<Add>},
    {"And", truth<And>},
    {"BitShift", shift},
    {"BitwiseAnd", bits<BitwiseAnd>},
    {"BitwiseOr", bits<BitwiseOr>},
    {"BitwiseXor", bits<BitwiseXor>},
    {"Div", quotient<Div>},
    {"Equal", equality},
    {"Greater", order<Greater>},
    {"GreaterOrEqual", order<GreaterOrEqual>},
    {"Less", order<Less>},
    {"LessOrEqual", order<LessOrEqual>},
    {"Mod", modulus},
    {"Mul", wrapping<Mul>},
    {"Or", truth<Or>},
    {"Pow", power},
    {"Sub", wrapping<Sub>},
    {"Xor", truth<Xor>},
};

}  // namespace

Computation binary_computation(const Node& node, DataType left, DataType right) {
  const auto found = kChoices.find(node.op);
  TESSERA_CHECK(found != kChoices.end(), "every binary op has its loop");
  return found->second(node, left, right);
}

}  // namespace tessera::ops
