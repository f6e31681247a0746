// The instructions of fused groups as expressions of C-like languages. Included by
// tessera/backend_fusion_c.h, which authors include.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/backend_fusion_c_kernel.h"

namespace tessera::plugin::c_kernel_detail {

inline bool is_16_bit_float(int32_t type) {
  return type == TESSERA_FLOAT16 || type == TESSERA_BFLOAT16;
}
inline bool is_wide_float(int32_t type) {
  return type == TESSERA_FLOAT32 || type == TESSERA_FLOAT64;
}
inline bool is_64_bit(int32_t type) {
  return type == TESSERA_INT64 || type == TESSERA_UINT64 || type == TESSERA_FLOAT64;
}
inline bool is_unsigned(int32_t type) { return type >= TESSERA_UINT8 && type <= TESSERA_UINT64; }

// Replaces each "$name$" by what the dialect calls it.
inline std::string in_dialect(std::string_view text, const CDialect& dialect) {
  const std::pair<std::string_view, const std::string&> names[] = {
      {"function", dialect.function},
      {"multiply_high", dialect.multiply_high},
      {"float", dialect.types[TESSERA_FLOAT32]},
      {"uint16", dialect.types[TESSERA_UINT16]},
      {"uint32", dialect.types[TESSERA_UINT32]},
      {"from_bits", dialect.float32.from_bits},
      {"to_bits", dialect.float32.to_bits}};
  std::string result;
  while (true) {
    const size_t begin = text.find('$');
    result += text.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const size_t end = text.find('$', begin + 1);
    const std::string_view name = text.substr(begin + 1, end - begin - 1);
    for (const auto& [key, value] : names) {
      if (key == name) result += value;
    }
    text.remove_prefix(end + 1);
  }
}

constexpr std::string_view kFunctions = R"(
#define QUOTIENT(number, size) \
  ((int)($multiply_high$(2 * ($uint32$)(number), ($uint32$)size##_magic) >> size##_shift))
// Comparisons with NaN are false, so each of these returns NaN if one argument is NaN.
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define SATURATED(x, type, least, lowest, beyond, largest) \
  ((x) != (x) ? (type)0 : (x) >= beyond ? (type)largest : (x) < least ? (type)lowest : (type)(x))
)";

// Denormals are not computed with: a device may replace them by zero.
constexpr std::string_view kFloat16Functions = R"(
$function$$float$ float16_to_float32($uint16$ bits) {
  const $uint32$ sign = ($uint32$)(bits & 0x8000) << 16;
  const $uint32$ rest = ($uint32$)(bits & 0x7fff) << 13;
  // The exponent of a denormal is that of the smallest normal number.
  const $float$ smallest = $from_bits$(($uint32$)0x38800000);
  const $uint32$ denormal = $to_bits$($from_bits$(rest + ($uint32$)0x38800000) - smallest);
  const $uint32$ number = rest < 0x00800000 ? denormal
                        : rest >= 0x0f800000 ? rest | 0x7f800000 : rest + 0x38000000;
  return $from_bits$(sign | number);
}
$function$$uint16$ float32_to_float16($float$ value) {
  const $uint32$ bits = $to_bits$(value);
  const $uint32$ rest = bits & 0x7fffffff;
  const $uint32$ normal = ((rest + 0xfff + (rest >> 13 & 1)) >> 13) - 0x1c000;
  // Adding 0.5 lets the device round at the bit that will be the lowest.
  const $float$ half_one = $from_bits$(($uint32$)0x3f000000);
  const $uint32$ denormal = $to_bits$($from_bits$(rest) + half_one) - 0x3f000000;
  const $uint32$ number = rest > 0x7f800000 ? 0x7e00
                        : rest >= 0x477ff000 ? 0x7c00
                        : rest >= 0x38800000 ? normal : denormal;
  return ($uint16$)((bits >> 16 & 0x8000) | number);
}
)";

constexpr std::string_view kBfloat16Functions = R"(
$function$$float$ bfloat16_to_float32($uint16$ bits) { return $from_bits$(($uint32$)bits << 16); }
$function$$uint16$ float32_to_bfloat16($float$ value) {
  const $uint32$ bits = $to_bits$(value);
  const $uint32$ number = (bits & 0x7fffffff) > 0x7f800000
                              ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return ($uint16$)number;
}
)";

// The right sides of instructions. The value of instruction 7 is called v7.
class CExpressions {
 public:
  CExpressions(const FusedGroup& group, const CDialect& dialect)
      : group_(group), dialect_(dialect) {}

  // The type of a value in a register.
  const std::string& type(int32_t data_type) const {
    return dialect_
        .types[static_cast<size_t>(is_16_bit_float(data_type) ? TESSERA_UINT16 : data_type)];
  }
  // The type of an element in memory.
  const std::string& memory_type(int32_t data_type) const {
    return type(data_type == TESSERA_BOOL ? TESSERA_UINT8 : data_type);
  }

  std::string text(const Instruction& instruction) const {
    switch (instruction.operation) {
      case TESSERA_EXPRESSION_CONSTANT:
        return constant(instruction.data_type, instruction.bits);
      case TESSERA_EXPRESSION_NEGATE:
      case TESSERA_EXPRESSION_ABSOLUTE:
      case TESSERA_EXPRESSION_NOT:
        return sign_or_bits(instruction);
      case TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD:
        return names(instruction.data_type).fused_multiply_add + "(" + value(instruction, 0) +
               ", " + value(instruction, 1) + ", " + value(instruction, 2) + ")";
      case TESSERA_EXPRESSION_SQUARE_ROOT:
      case TESSERA_EXPRESSION_FLOOR:
      case TESSERA_EXPRESSION_CEILING:
      case TESSERA_EXPRESSION_TRUNCATE:
      case TESSERA_EXPRESSION_ROUND:
        return function_of(instruction) + "(" + value(instruction, 0) + ")";
      case TESSERA_EXPRESSION_SELECT:
        return value(instruction, 0) + " ? " + value(instruction, 1) + " : " +
               value(instruction, 2);
      case TESSERA_EXPRESSION_CONVERT:
        return conversion(instruction);
      case TESSERA_EXPRESSION_BIT_CAST:
        return bit_cast(instruction);
      default:
        return binary(instruction.operation, instruction.data_type, value(instruction, 0),
                      value(instruction, 1));
    }
  }

  // Combines two partial results of a reduction.
  std::string combined(const Instruction& reduction, const std::string& left,
                       const std::string& right) const {
    const bool is_sum = reduction.operation == TESSERA_EXPRESSION_REDUCE_SUM;
    if (is_sum || reduction.operation == TESSERA_EXPRESSION_REDUCE_PRODUCT) {
      const int32_t operation = is_sum ? TESSERA_EXPRESSION_ADD : TESSERA_EXPRESSION_MULTIPLY;
      return binary(operation, reduction.data_type, left, right);
    }
    const bool is_max = reduction.operation == TESSERA_EXPRESSION_REDUCE_MAX;
    return (is_max ? "LARGER(" : "SMALLER(") + left + ", " + right + ")";
  }

  // The value with which a reduction begins.
  std::string first(const Instruction& reduction) const {
    const int32_t type = reduction.data_type;
    const bool is_max = reduction.operation == TESSERA_EXPRESSION_REDUCE_MAX;
    if (reduction.operation == TESSERA_EXPRESSION_REDUCE_SUM) return constant(type, 0);
    if (reduction.operation == TESSERA_EXPRESSION_REDUCE_PRODUCT) {
      return "(" + this->type(type) + ")1";
    }
    switch (type) {
      case TESSERA_FLOAT32:
        return constant(type, is_max ? 0xff800000 : 0x7f800000);
      case TESSERA_FLOAT64:
        return constant(type, is_max ? 0xfff0000000000000 : 0x7ff0000000000000);
      case TESSERA_INT32:
        return constant(type, is_max ? 0x80000000 : 0x7fffffff);
      default:
        return constant(type, is_max ? 0x8000000000000000 : 0x7fffffffffffffff);
    }
  }

 private:
  const Instruction& argument(const Instruction& instruction, size_t index) const {
    return group_.instructions[static_cast<size_t>(instruction.arguments[index])];
  }
  std::string value(const Instruction& instruction, size_t index) const {
    return "v" + std::to_string(instruction.arguments[index]);
  }
  const CFloatNames& names(int32_t data_type) const {
    return data_type == TESSERA_FLOAT64 ? dialect_.float64 : dialect_.float32;
  }
  std::string cast(const std::string& name, const std::string& text) const {
    return "(" + name + ")(" + text + ")";
  }
  // Unsigned integers in which the arithmetic of a type, or its bits, can be computed.
  const std::string& unsigned_type(int32_t data_type) const {
    return type(is_64_bit(data_type) ? TESSERA_UINT64 : TESSERA_UINT32);
  }

  std::string constant(int32_t data_type, uint64_t bits) const {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string digits;
    for (uint64_t rest = bits; rest != 0 || digits.empty(); rest /= 16) {
      digits.insert(digits.begin(), kDigits[rest % 16]);
    }
    const std::string number = "0x" + digits;
    if (!is_wide_float(data_type)) return cast(type(data_type), number);
    return names(data_type).from_bits + "((" + unsigned_type(data_type) + ")" + number + ")";
  }

  // Signed integers are computed as unsigned ones, because their overflow is not defined.
  std::string binary(int32_t operation, int32_t data_type, const std::string& left,
                     const std::string& right) const {
    const bool is_float = is_wide_float(data_type);
    const std::string to_unsigned = is_float ? "" : "(" + unsigned_type(data_type) + ")";
    const auto joined = [&](const char* sign, bool is_unsigned_arithmetic) {
      const std::string& begin = is_unsigned_arithmetic ? to_unsigned : "";
      return cast(type(data_type), begin + left + sign + begin + right);
    };
    switch (operation) {
      case TESSERA_EXPRESSION_ADD:
        return joined(" + ", true);
      case TESSERA_EXPRESSION_SUBTRACT:
        return joined(" - ", true);
      case TESSERA_EXPRESSION_MULTIPLY:
        return joined(" * ", true);
      case TESSERA_EXPRESSION_DIVIDE:
        if (!is_float || names(data_type).divide.empty()) return joined(" / ", false);
        return names(data_type).divide + "(" + left + ", " + right + ")";
      case TESSERA_EXPRESSION_REMAINDER:
        return joined(" % ", false);
      case TESSERA_EXPRESSION_AND:
        return joined(" & ", false);
      case TESSERA_EXPRESSION_OR:
        return joined(" | ", false);
      case TESSERA_EXPRESSION_XOR:
        return joined(" ^ ", false);
      case TESSERA_EXPRESSION_SHIFT_LEFT:
        return cast(type(data_type), to_unsigned + left + " << " + right);
      case TESSERA_EXPRESSION_SHIFT_RIGHT:
        return joined(" >> ", false);
      case TESSERA_EXPRESSION_EQUAL:
        return left + " == " + right;
      case TESSERA_EXPRESSION_LESS:
        return left + " < " + right;
      case TESSERA_EXPRESSION_LESS_OR_EQUAL:
        return left + " <= " + right;
      default:
        throw Failure(TESSERA_UNSUPPORTED, "does not know the operation " +
                                               std::to_string(operation) + " of expressions");
    }
  }

  std::string sign_or_bits(const Instruction& instruction) const {
    const int32_t type = instruction.data_type;
    const std::string x = value(instruction, 0);
    if (instruction.operation == TESSERA_EXPRESSION_NOT) {
      return type == TESSERA_BOOL ? "!" + x : cast(this->type(type), "~" + x);
    }
    const bool negates = instruction.operation == TESSERA_EXPRESSION_NEGATE;
    const std::string unsigned_name = "(" + unsigned_type(type) + ")";
    if (is_wide_float(type)) {
      // A device's own functions may change the bits of NaN.
      const std::string sign = type == TESSERA_FLOAT64 ? "0x8000000000000000" : "0x80000000";
      const std::string mask =
          negates ? " ^ " + unsigned_name + sign : " & ~" + unsigned_name + sign;
      return names(type).from_bits + "(" + unsigned_name + names(type).to_bits + "(" + x + ")" +
             mask + ")";
    }
    std::string negated = cast(this->type(type), unsigned_name + "0 - " + unsigned_name + x);
    if (negates) return negated;
    return is_unsigned(type) ? x : x + " < 0 ? " + negated + " : " + x;
  }

  std::string function_of(const Instruction& instruction) const {
    const CFloatNames& names = this->names(instruction.data_type);
    switch (instruction.operation) {
      case TESSERA_EXPRESSION_SQUARE_ROOT:
        return names.square_root;
      case TESSERA_EXPRESSION_FLOOR:
        return names.floor;
      case TESSERA_EXPRESSION_CEILING:
        return names.ceiling;
      case TESSERA_EXPRESSION_TRUNCATE:
        return names.truncate;
      default:
        return names.round;
    }
  }

  std::string conversion(const Instruction& instruction) const {
    const int32_t from = argument(instruction, 0).data_type;
    const int32_t to = instruction.data_type;
    const std::string x = value(instruction, 0);
    if (from == TESSERA_FLOAT16) return "float16_to_float32(" + x + ")";
    if (from == TESSERA_BFLOAT16) return "bfloat16_to_float32(" + x + ")";
    if (to == TESSERA_FLOAT16) return "float32_to_float16(" + x + ")";
    if (to == TESSERA_BFLOAT16) return "float32_to_bfloat16(" + x + ")";
    if (!is_wide_float(from) || is_wide_float(to)) return cast(type(to), x);
    // The range: the first number beyond it is a power of two, which all floats have.
    const std::string suffix = from == TESSERA_FLOAT32 ? "f" : "";
    const char* range = to == TESSERA_INT32   ? "-2147483648.0"
                        : to == TESSERA_INT64 ? "-9223372036854775808.0"
                                              : "-0.0";
    const char* beyond = to == TESSERA_INT32   ? "2147483648.0"
                         : to == TESSERA_INT64 ? "9223372036854775808.0"
                                               : "18446744073709551616.0";
    const char* lowest = to == TESSERA_INT32   ? "0x80000000"
                         : to == TESSERA_INT64 ? "0x8000000000000000"
                                               : "0";
    const char* largest = to == TESSERA_INT32   ? "0x7fffffff"
                          : to == TESSERA_INT64 ? "0x7fffffffffffffff"
                                                : "0xffffffffffffffff";
    return "SATURATED(" + x + ", " + type(to) + ", " + range + suffix + ", " + lowest + ", " +
           beyond + suffix + ", " + largest + ")";
  }

  std::string bit_cast(const Instruction& instruction) const {
    const int32_t from = argument(instruction, 0).data_type;
    const int32_t to = instruction.data_type;
    const std::string x = value(instruction, 0);
    if (is_wide_float(from) == is_wide_float(to)) return cast(type(to), x);
    if (is_wide_float(from)) return cast(type(to), names(from).to_bits + "(" + x + ")");
    return names(to).from_bits + "((" + unsigned_type(to) + ")" + x + ")";
  }

  const FusedGroup& group_;
  const CDialect& dialect_;
};

}  // namespace tessera::plugin::c_kernel_detail
