#include "print_operation.h"

namespace tessera::jit {

using plugin::Failure;
using plugin::Instruction;

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Failure(TESSERA_UNSUPPORTED, "compiled kernels do not have " + what);
}

// Prints one operation, whose arguments all have `lanes` lanes.
class OperationPrinter {
 public:
  OperationPrinter(IrWriter& writer, const Target& target, const Instruction& instruction,
                   const std::vector<Argument>& arguments, int lanes)
      : writer_(writer),
        target_(target),
        instruction_(instruction),
        arguments_(arguments),
        lanes_(lanes),
        type_(ir_type(arguments.empty() ? instruction.data_type : arguments[0].data_type)) {}

  std::string print() {
    check_sixteen_bit_floats();
    switch (instruction_.operation) {
      case TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD:
        if (!target_.has_fused_multiply_add()) refuse("fused multiply-add on x86-64-v2");
        return call("llvm.fma");
      case TESSERA_EXPRESSION_SQUARE_ROOT:
        return call("llvm.sqrt");
      case TESSERA_EXPRESSION_FLOOR:
        return call("llvm.floor");
      case TESSERA_EXPRESSION_CEILING:
        return call("llvm.ceil");
      case TESSERA_EXPRESSION_TRUNCATE:
        return call("llvm.trunc");
      case TESSERA_EXPRESSION_ROUND:
        return call("llvm.roundeven");
      case TESSERA_EXPRESSION_NEGATE:
        return type_.is_float ? unary("fneg") : binary_with("sub", "zeroinitializer");
      case TESSERA_EXPRESSION_ABSOLUTE:
        return absolute();
      case TESSERA_EXPRESSION_NOT:
        return writer_.value("xor " + vector_type() + " " + argument(0) + ", " + all_ones());
      case TESSERA_EXPRESSION_EQUAL:
        return binary(type_.is_float ? "fcmp oeq" : "icmp eq");
      case TESSERA_EXPRESSION_LESS:
        return binary(type_.is_float ? "fcmp olt" : type_.is_signed ? "icmp slt" : "icmp ult");
      case TESSERA_EXPRESSION_LESS_OR_EQUAL:
        return binary(type_.is_float ? "fcmp ole" : type_.is_signed ? "icmp sle" : "icmp ule");
      case TESSERA_EXPRESSION_SELECT:
        return select();
      case TESSERA_EXPRESSION_CONVERT:
        return convert();
      case TESSERA_EXPRESSION_BIT_CAST:
        return bit_cast();
      default:
        return binary(arithmetic());
    }
  }

 private:
  const std::string& argument(size_t index) const { return arguments_[index].value; }
  std::string vector_type() const { return of_lanes(type_.value, lanes_); }
  std::string typed(size_t index) const { return vector_type() + " " + argument(index); }
  std::string mangled(const IrType& type) const {
    return lanes_ == 1 ? "." + std::string(type.suffix)
                       : ".v" + std::to_string(lanes_) + std::string(type.suffix);
  }
  // A constant with the same bits in all lanes.
  std::string number(const std::string& value) const {
    return lanes_ == 1 ? value : constant_vector("i32", value);
  }
  std::string constant_vector(const std::string& type, const std::string& value) const {
    std::string text;
    for (int lane = 0; lane < lanes_; ++lane) text += (lane == 0 ? "" : ", ") + type + " " + value;
    return "<" + text + ">";
  }
  std::string all_ones() const {
    return lanes_ == 1 ? "-1" : constant_vector(std::string(type_.value), "-1");
  }

  std::string call(const std::string& intrinsic) {
    if (!type_.is_float) refuse("this operation on integers");
    std::vector<std::pair<std::string, std::string>> given;
    for (const Argument& each : arguments_) given.emplace_back(vector_type(), each.value);
    return writer_.call(vector_type(), intrinsic + mangled(type_), given);
  }

  std::string unary(const std::string& operation) {
    return writer_.value(operation + " " + typed(0));
  }
  std::string binary(const std::string& operation) {
    return writer_.value(operation + " " + typed(0) + ", " + argument(1));
  }
  std::string binary_with(const std::string& operation, const std::string& left) {
    const std::string zero = lanes_ == 1 ? "0" : left;
    return writer_.value(operation + " " + vector_type() + " " + zero + ", " + argument(0));
  }

  std::string absolute() {
    if (type_.is_float) return call("llvm.fabs");
    return writer_.call(vector_type(), "llvm.abs" + mangled(type_),
                        {{vector_type(), argument(0)}, {"i1", "false"}});
  }

  std::string select() {
    const IrType& chosen = ir_type(instruction_.data_type);
    const std::string type = of_lanes(chosen.value, lanes_);
    return writer_.value("select " + of_lanes("i1", lanes_) + " " + argument(0) + ", " + type +
                         " " + argument(1) + ", " + type + " " + argument(2));
  }

  // 16-bit floats are represented by their bits, which other operations would take for integers.
  void check_sixteen_bit_floats() const {
    for (const Argument& each : arguments_) {
      const bool is_half = each.data_type == TESSERA_FLOAT16 || each.data_type == TESSERA_BFLOAT16;
      const int32_t operation = instruction_.operation;
      if (is_half && operation != TESSERA_EXPRESSION_SELECT &&
          operation != TESSERA_EXPRESSION_CONVERT && operation != TESSERA_EXPRESSION_BIT_CAST) {
        refuse("arithmetic on 16-bit floats");
      }
    }
  }

  // The LLVM operation of arithmetic on floats or integers.
  std::string arithmetic() const {
    const bool is_float = type_.is_float;
    const bool is_signed = type_.is_signed;
    switch (instruction_.operation) {
      case TESSERA_EXPRESSION_ADD:
        return is_float ? "fadd" : "add";
      case TESSERA_EXPRESSION_SUBTRACT:
        return is_float ? "fsub" : "sub";
      case TESSERA_EXPRESSION_MULTIPLY:
        return is_float ? "fmul" : "mul";
      case TESSERA_EXPRESSION_DIVIDE:
        return is_float ? "fdiv" : is_signed ? "sdiv" : "udiv";
      default:
        break;
    }
    if (is_float) refuse("this operation on floats");
    switch (instruction_.operation) {
      case TESSERA_EXPRESSION_REMAINDER:
        return is_signed ? "srem" : "urem";
      case TESSERA_EXPRESSION_AND:
        return "and";
      case TESSERA_EXPRESSION_OR:
        return "or";
      case TESSERA_EXPRESSION_XOR:
        return "xor";
      case TESSERA_EXPRESSION_SHIFT_LEFT:
        return "shl";
      case TESSERA_EXPRESSION_SHIFT_RIGHT:
        return is_signed ? "ashr" : "lshr";
      default:
        refuse("operation " + std::to_string(instruction_.operation));
    }
  }

  std::string cast(const std::string& operation, const std::string& value, std::string_view from,
                   std::string_view to) {
    return writer_.value(operation + " " + of_lanes(from, lanes_) + " " + value + " to " +
                         of_lanes(to, lanes_));
  }

  std::string bit_cast() {
    const IrType& to = ir_type(instruction_.data_type);
    if (to.bytes != type_.bytes || to.value == "i1" || type_.value == "i1") {
      refuse("bit casts between types of different sizes");
    }
    if (to.value == type_.value) return argument(0);
    return cast("bitcast", argument(0), type_.value, to.value);
  }

  std::string convert() {
    const int32_t from_type = arguments_[0].data_type;
    const int32_t to_type = instruction_.data_type;
    if (from_type == TESSERA_FLOAT16 || from_type == TESSERA_BFLOAT16) {
      if (to_type != TESSERA_FLOAT32) refuse("this conversion of 16-bit floats");
      return from_type == TESSERA_FLOAT16 ? from_float16() : from_bfloat16();
    }
    if (to_type == TESSERA_FLOAT16 || to_type == TESSERA_BFLOAT16) {
      if (from_type != TESSERA_FLOAT32) refuse("this conversion to 16-bit floats");
      return to_type == TESSERA_FLOAT16 ? to_float16() : to_bfloat16();
    }
    const IrType& to = ir_type(to_type);
    if (to_type == TESSERA_BOOL) refuse("conversions to bool");
    if (type_.is_float && to.is_float) {
      if (type_.bytes == to.bytes) return argument(0);
      return cast(to.bytes > type_.bytes ? "fpext" : "fptrunc", argument(0), type_.value, to.value);
    }
    if (type_.is_float) return to_integer(to);
    const bool is_signed = type_.is_signed && from_type != TESSERA_BOOL;
    if (to.is_float) {
      return cast(is_signed ? "sitofp" : "uitofp", argument(0), type_.value, to.value);
    }
    if (type_.value == to.value) return argument(0);
    const bool widens = from_type == TESSERA_BOOL || to.bytes > type_.bytes;
    return cast(!widens     ? "trunc"
                : is_signed ? "sext"
                            : "zext",
                argument(0), type_.value, to.value);
  }

  std::string to_integer(const IrType& to) {
    const std::string result = of_lanes(to.value, lanes_);
    return writer_.call(result,
                        std::string(to.is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat") +
                            mangled(to) + mangled(type_),
                        {{vector_type(), argument(0)}});
  }

  void require_float16() const {
    if (!target_.has_float16_conversions()) refuse("float16 conversions on x86-64-v2");
  }
  std::string from_float16() {
    require_float16();
    return cast("fpext", cast("bitcast", argument(0), "i16", "half"), "half", "float");
  }
  std::string to_float16() {
    require_float16();
    return cast("bitcast", cast("fptrunc", argument(0), "float", "half"), "half", "i16");
  }

  std::string from_bfloat16() {
    const std::string wide = cast("zext", argument(0), "i16", "i32");
    const std::string bits =
        writer_.value("shl " + of_lanes("i32", lanes_) + " " + wide + ", " + number("16"));
    return cast("bitcast", bits, "i32", "float");
  }

  // Adds half a unit, and one less for an even result: ties go to even.
  std::string to_bfloat16() {
    const std::string type = of_lanes("i32", lanes_) + " ";
    const auto with = [&](const std::string& operation, const std::string& left,
                          const std::string& right) {
      return writer_.value(operation + " " + type + left + ", " + right);
    };
    const std::string bits = cast("bitcast", argument(0), "float", "i32");
    const std::string high = with("lshr", bits, number("16"));
    const std::string odd = with("and", high, number("1"));
    const std::string half = with("add", odd, number("32767"));
    const std::string rounded = with("lshr", with("add", bits, half), number("16"));
    const std::string quiet = with("or", high, number("64"));
    const std::string is_nan = writer_.value("fcmp uno " + typed(0) + ", " + argument(0));
    const std::string chosen = writer_.value("select " + of_lanes("i1", lanes_) + " " + is_nan +
                                             ", " + type + quiet + ", " + type + rounded);
    return cast("trunc", chosen, "i32", "i16");
  }

  IrWriter& writer_;
  const Target& target_;
  const Instruction& instruction_;
  const std::vector<Argument>& arguments_;
  int lanes_;
  const IrType& type_;  // of the first argument
};

}  // namespace

void check_divisor(const plugin::FusedGroup& group, const Instruction& instruction) {
  const IrType& type = ir_type(instruction.data_type);
  if (instruction.operation != TESSERA_EXPRESSION_REMAINDER &&
      (instruction.operation != TESSERA_EXPRESSION_DIVIDE || type.is_float)) {
    return;
  }
  const Instruction& divisor = group.instructions[static_cast<size_t>(instruction.arguments[1])];
  const int bits = 8 * type.bytes;
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const bool is_minus_one = type.is_signed && (divisor.bits & all) == all;
  if (divisor.operation != TESSERA_EXPRESSION_CONSTANT || (divisor.bits & all) == 0 ||
      is_minus_one) {
    throw Failure(TESSERA_UNSUPPORTED, "divides integers by constants other than 0 and -1 only");
  }
}

std::string print_operation(IrWriter& writer, const Target& target, const Instruction& instruction,
                            const std::vector<Argument>& arguments, int lanes) {
  return OperationPrinter(writer, target, instruction, arguments, lanes).print();
}

std::string print_constant(IrWriter& writer, int32_t data_type, uint64_t bits) {
  const IrType& type = ir_type(data_type);
  if (type.value == "i1") return bits != 0 ? "true" : "false";
  if (type.bytes < 8) bits &= (uint64_t{1} << (8 * type.bytes)) - 1;
  std::string number = std::to_string(bits);
  if (!type.is_float) return number;
  return writer.value("bitcast i" + std::to_string(8 * type.bytes) + " " + number + " to " +
                      std::string(type.value));
}

}  // namespace tessera::jit
