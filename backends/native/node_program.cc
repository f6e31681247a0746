#include "node_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "constants.h"

namespace tessera::native {

using plugin::Attributes;
using plugin::Failure;
using plugin::Node;
using plugin::Value;
using Id = ProgramWriter::Id;

namespace {

// Before these, operands are stretched as attributes say, or not at all.
constexpr int32_t kFirstBroadcastingBinary = 7;
constexpr int32_t kFirstBroadcastingPRelu = 7;
constexpr int32_t kFirstClipInputs = 11;

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

bool is_half(int32_t type) { return type == TESSERA_FLOAT16 || type == TESSERA_BFLOAT16; }

bool is_floating(int32_t type) {
  return is_half(type) || type == TESSERA_FLOAT32 || type == TESSERA_FLOAT64;
}

// `id` as elements of `type`. From or to a 16-bit float it goes through float32.
Id converted(ProgramWriter& writer, Id id, int32_t type) {
  const int32_t from = writer.type_of(id);
  if (from == type) return id;
  const bool is_direct = !find_cast_loops(from, type).is_empty();
  if (!is_direct && from != TESSERA_FLOAT32 && type != TESSERA_FLOAT32) {
    return converted(writer, converted(writer, id, TESSERA_FLOAT32), type);
  }
  return writer.apply("Cast", find_cast_loops(from, type), type, {id});
}

// The type that elements of `type` are computed in.
int32_t computed_type(int32_t type) { return is_half(type) ? TESSERA_FLOAT32 : type; }

// An operand in the type that it is computed in.
Id operand(ProgramWriter& writer, const Value& value,
           std::optional<std::vector<int64_t>> dims = std::nullopt) {
  const Id id = writer.read(value, std::move(dims));
  return converted(writer, id, computed_type(writer.type_of(id)));
}

// Gives `id`, in the type that the output has.
void give(const Node& node, ProgramWriter& writer, Id id) {
  const Value output = elementwise_result(node);
  const int32_t type = output.type().data_type;
  writer.give(output, converted(writer, id, type));
}

// A copy, where an output is an operand as it is.
void give_copy(const Node& node, ProgramWriter& writer, Id id) {
  const int32_t type = writer.type_of(id);
  give(node, writer,
       writer.apply("a copy", find_copy_loops(plugin::element_bytes(type)), type, {id}));
}

// --- Functions of one variable -------------------------------------------------------------------

// The attributes that a function has, in the order alpha, beta of Parameters.
struct NamedParameters {
  const char* alpha = nullptr;
  const char* beta = nullptr;
};
const std::map<std::string_view, NamedParameters> kFunctions = {
    {"Abs", {}},
    {"Acos", {}},
    {"Acosh", {}},
    {"Asin", {}},
    {"Asinh", {}},
    {"Atan", {}},
    {"Atanh", {}},
    {"BitwiseNot", {}},
    {"Ceil", {}},
    {"Celu", {"alpha"}},
    {"Cos", {}},
    {"Cosh", {}},
    {"Elu", {"alpha"}},
    {"Erf", {}},
    {"Exp", {}},
    {"Floor", {}},
    {"Gelu", {}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"HardSwish", {}},
    {"LeakyRelu", {"alpha"}},
    {"Log", {}},
    {"Mish", {}},
    {"Neg", {}},
    {"Not", {}},
    {"Reciprocal", {}},
    {"Relu", {}},
    {"Round", {}},
    {"Selu", {"alpha", "gamma"}},
    {"Shrink", {"lambd", "bias"}},
    {"Sigmoid", {}},
    {"Sign", {}},
    {"Sin", {}},
    {"Sinh", {}},
    {"Softplus", {}},
    {"Softsign", {}},
    {"Sqrt", {}},
    {"Swish", {"alpha"}},
    {"Tan", {}},
    {"Tanh", {}},
    {"ThresholdedRelu", {"alpha"}},
};

void write_function(const Node& node, ProgramWriter& writer) {
  std::string_view op = node.op();
  const Attributes attributes = node.attributes();
  const NamedParameters& names = kFunctions.at(op);
  Parameters parameters;
  if (names.alpha != nullptr) parameters.alpha = attributes.get_float(names.alpha);
  if (names.beta != nullptr) parameters.beta = attributes.get_float(names.beta);
  if (op == "Gelu" && attributes.get_string("approximate") == "tanh") op = "GeluTanh";
  const Id x = operand(writer, node.input(0));
  const int32_t type = writer.type_of(x);
  LoopSet loops;
  if (type == TESSERA_FLOAT32) loops = find_function_loops(op);
  if (loops.is_empty()) loops = find_question_loops(op, type);
  if (loops.is_empty()) loops = find_rare_loops(op, type);
  give(node, writer, writer.apply(op, loops, type, {x}, parameters));
}

void write_question(const Node& node, ProgramWriter& writer) {
  Parameters parameters;
  parameters.alpha = node.attributes().get_int("detect_negative", 1) != 0 ? 1 : 0;
  parameters.beta = node.attributes().get_int("detect_positive", 1) != 0 ? 1 : 0;
  const Id x = operand(writer, node.input(0));
  const int32_t type = writer.type_of(x);
  LoopSet loops = find_question_loops(node.op(), type);
  if (loops.is_empty()) loops = find_rare_loops(node.op(), type);
  give(node, writer, writer.apply(node.op(), loops, TESSERA_BOOL, {x}, parameters));
}

void write_cast(const Node& node, ProgramWriter& writer) {
  const Id x = writer.read(node.input(0));
  // The second input of CastLike tells a type and nothing else.
  for (size_t index = 1; index < node.input_count(); ++index) writer.mention(node.input(index));
  if (writer.type_of(x) == node.output(0).type().data_type) return give_copy(node, writer, x);
  give(node, writer, x);
}

void write_identity(const Node& node, ProgramWriter& writer) {
  give_copy(node, writer, writer.read(node.input(0)));
}

void write_dropout(const Node& node, ProgramWriter& writer) {
  const Value training = node.input(2);
  if (training.is_present()) {
    const auto is_training = training.constant_as<uint8_t>();
    if (is_training.size() != 1) refuse("'training_mode' is not known before running");
    if (is_training[0] != 0) refuse("has no training mode of Dropout; 'training_mode' is true");
  }
  const Value mask = node.output(1);
  if (mask.is_present() && (mask.is_needed() || !mask.consumers().empty())) {
    refuse("does not return the mask of Dropout");
  }
  const Id x = writer.read(node.input(0));
  for (size_t index = 1; index < node.input_count(); ++index) {
    if (!node.input(index).is_constant()) writer.mention(node.input(index));
  }
  give_copy(node, writer, x);
}

// --- Functions of two variables ------------------------------------------------------------------

// The dimensions of the right operand among the left one's, as attributes said before version 7.
std::vector<int64_t> old_dims(const Node& node) {
  const std::vector<int64_t> left = node.input(0).type().dims;
  const std::vector<int64_t> right = node.input(1).type().dims;
  if (right.size() > left.size()) refuse("its right operand has more dimensions than the left one");
  const auto last = static_cast<int64_t>(left.size() - right.size());
  const bool is_single =
      std::all_of(right.begin(), right.end(), [](int64_t dim) { return dim == 1; });
  int64_t axis = node.attributes().get_int("axis", last);
  if (axis < 0) axis += static_cast<int64_t>(left.size());
  if (is_single) axis = last;
  if (axis < 0 || axis > last) refuse("attribute 'axis' leaves no room for its right operand");
  std::vector<int64_t> dims(left.size(), 1);
  std::copy(right.begin(), right.end(), dims.begin() + axis);
  return dims;
}

std::optional<std::vector<int64_t>> right_dims(const Node& node) {
  if (node.version() >= kFirstBroadcastingBinary) return std::nullopt;
  return old_dims(node);
}

LoopSet find_pair_loops(std::string_view op, int32_t type) {
  LoopSet loops = find_arithmetic_loops(op, type);
  return loops.is_empty() ? find_rare_loops(op, type) : loops;
}

bool divides(std::string_view op) {
  return op == "Div" || op == "FloorMod" || op == "TruncatedMod";
}

void write_arithmetic(const Node& node, ProgramWriter& writer) {
  std::string_view op = node.op();
  if (op == "Mod") op = node.attributes().get_int("fmod") != 0 ? "TruncatedMod" : "FloorMod";
  if (op == "BitShift") {
    op = node.attributes().get_string("direction") == "LEFT" ? "ShiftLeft" : "ShiftRight";
  }
  const Id left = operand(writer, node.input(0));
  const Id right = operand(writer, node.input(1), right_dims(node));
  const int32_t type = writer.type_of(left);
  if (op == "Mul" && type == TESSERA_FLOAT32) {
    // x * sigmoid(x), as models write swish out.
    const bool is_left = writer.argument_of("Sigmoid", left) == right;
    if (is_left || writer.argument_of("Sigmoid", right) == left) {
      const Parameters once = {1, 0};
      return give(node, writer,
                  writer.apply("Swish", find_function_loops("Swish"), type,
                               {is_left ? right : left}, once));
    }
  }
  // Integers of padding are zero, and a division by them would end the run.
  if (divides(op) && !is_floating(type)) writer.demand_row_major();
  give(node, writer, writer.apply(node.op(), find_pair_loops(op, type), type, {left, right}));
}

void write_comparison(const Node& node, ProgramWriter& writer) {
  std::string_view op = node.op();
  Id left = operand(writer, node.input(0));
  Id right = operand(writer, node.input(1), right_dims(node));
  if (op == "Greater" || op == "GreaterOrEqual") {
    op = op == "Greater" ? "Less" : "LessOrEqual";
    std::swap(left, right);
  }
  const int32_t type = writer.type_of(left);
  LoopSet loops = find_question_loops(op, type);
  if (loops.is_empty()) loops = find_rare_loops(op, type);
  give(node, writer, writer.apply(node.op(), loops, TESSERA_BOOL, {left, right}));
}

std::string_view power_function(double exponent) {
  if (exponent == 2) return "Square";
  if (exponent == 3) return "Cube";
  if (exponent == 0.5) return "RootOfPower";
  if (exponent == -1) return "Reciprocal";
  return "";
}

void write_power(const Node& node, ProgramWriter& writer) {
  const std::optional<double> exponent = number_in(node.input(1));
  const Id base = operand(writer, node.input(0));
  const int32_t type = writer.type_of(base);
  const bool is_stretched = node.input(0).type().dims != writer.result().dims;
  if (type == TESSERA_FLOAT32 && exponent && !is_stretched) {
    const std::string_view function = power_function(*exponent);
    const Id power = function.empty()
                         ? writer.apply("Pow", find_arithmetic_loops("Pow", type), type,
                                        {base, writer.number(type, *exponent)})
                         : writer.apply("Pow", find_function_loops(function), type, {base});
    return give(node, writer, power);
  }
  const Id right = operand(writer, node.input(1), right_dims(node));
  if (writer.type_of(right) != type) refuse("takes base and exponent of one type only");
  give(node, writer, writer.apply("Pow", find_pair_loops("Pow", type), type, {base, right}));
}

void write_prelu(const Node& node, ProgramWriter& writer) {
  std::optional<std::vector<int64_t>> dims;
  std::vector<int64_t> slope = node.input(1).type().dims;
  const size_t rank = node.input(0).type().dims.size();
  if (node.version() < kFirstBroadcastingPRelu && slope.size() == 1 && rank >= 2) {
    slope.resize(rank - 1, 1);
    dims = slope;
  }
  const Id x = operand(writer, node.input(0));
  const Id right = operand(writer, node.input(1), dims);
  const int32_t type = writer.type_of(x);
  give(node, writer, writer.apply("PRelu", find_pair_loops("PRelu", type), type, {x, right}));
}

// --- More variables ------------------------------------------------------------------------------

void write_variadic(const Node& node, ProgramWriter& writer) {
  const std::string_view op = node.op() == "Sum" || node.op() == "Mean" ? "Add" : node.op();
  Id sum = operand(writer, node.input(0));
  const int32_t type = writer.type_of(sum);
  for (size_t index = 1; index < node.input_count(); ++index) {
    const Id next = operand(writer, node.input(index));
    sum = writer.apply(node.op(), find_pair_loops(op, type), type, {sum, next});
  }
  if (node.op() == "Mean") {
    const Id count = writer.number(type, static_cast<double>(node.input_count()));
    sum = writer.apply(node.op(), find_arithmetic_loops("Div", type), type, {sum, count});
  } else if (node.input_count() == 1 && !is_half(node.input(0).type().data_type)) {
    return give_copy(node, writer, sum);
  }
  give(node, writer, sum);
}

void write_where(const Node& node, ProgramWriter& writer) {
  const Id condition = writer.read(node.input(0));
  const Id yes = writer.read(node.input(1));
  const Id no = writer.read(node.input(2));
  const int32_t type = writer.type_of(yes);
  give(node, writer,
       writer.apply("Where", find_select_loops(plugin::element_bytes(type)), type,
                    {condition, yes, no}));
}

// The bounds where none are given: infinities are beyond them.
double largest_of(int32_t type) {
  if (type == TESSERA_FLOAT16) return 65504;
  if (type == TESSERA_BFLOAT16) return 0x1.fep127;
  if (type == TESSERA_FLOAT32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}

void check_bound(const Value& bound) {
  if (!bound.is_present()) return;
  if (!bound.type().is_known() || bound.type().elements() != 1) {
    refuse("takes bounds of one element only");
  }
}

void write_clip(const Node& node, ProgramWriter& writer) {
  const int32_t given = node.input(0).type().data_type;
  Id x = operand(writer, node.input(0));
  const int32_t type = writer.type_of(x);
  std::optional<double> low = -largest_of(given);
  std::optional<double> high = largest_of(given);
  if (node.version() < kFirstClipInputs) {
    if (given != TESSERA_FLOAT32) refuse("takes bounds in attributes for float32 only");
    low = node.attributes().get_float("min", static_cast<float>(*low));
    high = node.attributes().get_float("max", static_cast<float>(*high));
  } else {
    check_bound(node.input(1));
    check_bound(node.input(2));
    low = -std::numeric_limits<double>::infinity();
    high = std::numeric_limits<double>::infinity();
    if (node.input(1).is_present()) low = number_in(node.input(1));
    if (node.input(2).is_present()) high = number_in(node.input(2));
  }
  const bool are_numbers = low && high && !std::isnan(*low) && !std::isnan(*high);
  if (type == TESSERA_FLOAT32 && are_numbers) {
    const Parameters bounds = {static_cast<float>(*low), static_cast<float>(*high)};
    return give(node, writer, writer.apply("Clip", find_function_loops("Clip"), type, {x}, bounds));
  }
  bool is_copy = true;
  const auto bound = [&](std::string_view op, size_t input, double otherwise) {
    const bool is_given = node.input(input).is_present();
    if (!is_given && node.version() >= kFirstClipInputs) return;
    const std::vector<int64_t> ones(writer.result().dims.size(), 1);
    const Id limit =
        is_given ? operand(writer, node.input(input), ones) : writer.number(type, otherwise);
    x = writer.apply("Clip", find_pair_loops(op, type), type, {x, limit});
    is_copy = false;
  };
  bound("AtLeast", 1, -largest_of(given));
  bound("AtMost", 2, largest_of(given));
  if (is_copy) return give_copy(node, writer, x);
  give(node, writer, x);
}

using Write = void (*)(const Node& node, ProgramWriter& writer);

const std::map<std::string_view, Write> kOthers = {
    {"Add", write_arithmetic},
    {"And", write_comparison},
    {"BitShift", write_arithmetic},
    {"BitwiseAnd", write_arithmetic},
    {"BitwiseOr", write_arithmetic},
    {"BitwiseXor", write_arithmetic},
    {"Cast", write_cast},
    {"CastLike", write_cast},
    {"Clip", write_clip},
    {"Div", write_arithmetic},
    {"Dropout", write_dropout},
    {"Equal", write_comparison},
    {"Greater", write_comparison},
    {"GreaterOrEqual", write_comparison},
    {"Identity", write_identity},
    {"IsInf", write_question},
    {"IsNaN", write_question},
    {"Less", write_comparison},
    {"LessOrEqual", write_comparison},
    {"Max", write_variadic},
    {"Mean", write_variadic},
    {"Min", write_variadic},
    {"Mod", write_arithmetic},
    {"Mul", write_arithmetic},
    {"Or", write_comparison},
    {"PRelu", write_prelu},
    {"Pow", write_power},
    {"Sub", write_arithmetic},
    {"Sum", write_variadic},
    {"Where", write_where},
    {"Xor", write_comparison},
};

Write find_writer(const Node& node) {
  if (!node.domain().empty()) return nullptr;
  if (kFunctions.contains(node.op())) return write_function;
  const auto found = kOthers.find(node.op());
  return found == kOthers.end() ? nullptr : found->second;
}

}  // namespace

Value elementwise_result(const Node& node) {
  return find_writer(node) != nullptr ? node.output(0) : Value(nullptr, -1);
}

void write_node(const Node& node, ProgramWriter& writer) {
  const Write write = find_writer(node);
  if (write == nullptr) refuse("there is no native kernel for this op");
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Value input = node.input(index);
    if (input.is_present() && !input.type().is_known()) refuse("takes tensors of known shape only");
  }
  if (!node.output(0).is_present()) refuse("has no output to compute");
  if (!node.output(0).type().is_known()) refuse("takes tensors of known shape only");
  write(node, writer);
}

}  // namespace tessera::native
