#include "elementwise/lower_node.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Attributes;
using plugin::Node;
using plugin::Value;
using Id = ProgramBuilder::Id;

namespace {

// Before these versions, operands broadcast as attributes say, or not at all.
constexpr int32_t kFirstBroadcastingBinary = 7;
constexpr int32_t kFirstBroadcastingPRelu = 7;
constexpr int32_t kFirstClipInputs = 11;

bool is_half(int32_t type) { return type == TESSERA_FLOAT16 || type == TESSERA_BFLOAT16; }

bool is_floating(int32_t type) {
  return is_half(type) || type == TESSERA_FLOAT32 || type == TESSERA_FLOAT64;
}

// `id` converted to `type`. If one of the types is a 16-bit float, the conversion goes through
// float32.
Id converted(ProgramBuilder& builder, Id id, int32_t type) {
  const int32_t from = builder.type_of(id);
  if (from == type) return id;
  const bool is_direct = !find_cast_loops(from, type).is_empty();
  if (!is_direct && from != TESSERA_FLOAT32 && type != TESSERA_FLOAT32) {
    const LoopSet odd = is_half(type) ? find_odd_loops(from) : LoopSet();
    if (!odd.is_empty()) {
      return converted(builder, builder.apply("Cast", odd, TESSERA_FLOAT32, {id}), type);
    }
    return converted(builder, converted(builder, id, TESSERA_FLOAT32), type);
  }
  return builder.apply("Cast", find_cast_loops(from, type), type, {id});
}

// The type in which elements of `type` are computed.
int32_t computed_type(int32_t type) { return is_half(type) ? TESSERA_FLOAT32 : type; }

// Reads an operand and converts it to the type in which it is computed.
Id operand(ProgramBuilder& builder, const Value& value,
           std::optional<std::vector<int64_t>> dims = std::nullopt) {
  const Id id = builder.read(value, std::move(dims));
  return converted(builder, id, computed_type(builder.type_of(id)));
}

// Sets the result of the node to `id`, converted to the type of the output.
void set_result(const Node& node, ProgramBuilder& builder, Id id) {
  const Value output = elementwise_result(node);
  const int32_t type = output.type().data_type;
  builder.set(output, converted(builder, id, type));
}

// Sets the result to a copy of an operand.
void set_copy(const Node& node, ProgramBuilder& builder, Id id) {
  const int32_t type = builder.type_of(id);
  set_result(node, builder,
             builder.apply("a copy", find_copy_loops(plugin::element_bytes(type)), type, {id}));
}

// --- Unary functions -----------------------------------------------------------------------------

// The names of the attributes of a function, in the order alpha, beta of Parameters.
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

void lower_unary(const Node& node, ProgramBuilder& builder) {
  std::string_view op = node.op();
  const Attributes attributes = node.attributes();
  const NamedParameters& names = kFunctions.at(op);
  Parameters parameters;
  if (names.alpha != nullptr) parameters.alpha = attributes.get_float(names.alpha);
  if (names.beta != nullptr) parameters.beta = attributes.get_float(names.beta);
  if (op == "Gelu" && attributes.get_string("approximate") == "tanh") op = "GeluTanh";
  const Id x = operand(builder, node.input(0));
  const int32_t type = builder.type_of(x);
  LoopSet loops = find_unary_loops(op, type);
  if (loops.is_empty()) loops = find_predicate_loops(op, type);
  if (loops.is_empty()) loops = find_fallback_loops(op, type);
  set_result(node, builder, builder.apply(op, loops, type, {x}, parameters));
}

void lower_predicate(const Node& node, ProgramBuilder& builder) {
  Parameters parameters;
  parameters.alpha = node.attributes().get_int("detect_negative", 1) != 0 ? 1 : 0;
  parameters.beta = node.attributes().get_int("detect_positive", 1) != 0 ? 1 : 0;
  const Id x = operand(builder, node.input(0));
  const int32_t type = builder.type_of(x);
  LoopSet loops = find_predicate_loops(node.op(), type);
  if (loops.is_empty()) loops = find_fallback_loops(node.op(), type);
  set_result(node, builder, builder.apply(node.op(), loops, TESSERA_BOOL, {x}, parameters));
}

void lower_cast(const Node& node, ProgramBuilder& builder) {
  const Id x = builder.read(node.input(0));
  // Only the type of the second input of CastLike counts.
  for (size_t index = 1; index < node.input_count(); ++index) builder.add_input(node.input(index));
  if (builder.type_of(x) == node.output(0).type().data_type) return set_copy(node, builder, x);
  set_result(node, builder, x);
}

void lower_identity(const Node& node, ProgramBuilder& builder) {
  set_copy(node, builder, builder.read(node.input(0)));
}

void lower_dropout(const Node& node, ProgramBuilder& builder) {
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
  const Id x = builder.read(node.input(0));
  for (size_t index = 1; index < node.input_count(); ++index) {
    if (!node.input(index).is_constant()) builder.add_input(node.input(index));
  }
  set_copy(node, builder, x);
}

// --- Binary functions ----------------------------------------------------------------------------

// The dimensions of the right operand aligned with those of the left one, by attributes as before
// version 7.
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

LoopSet find_binary_loops(std::string_view op, int32_t type) {
  LoopSet loops = find_arithmetic_loops(op, type);
  return loops.is_empty() ? find_fallback_loops(op, type) : loops;
}

bool is_division(std::string_view op) {
  return op == "Div" || op == "FloorMod" || op == "TruncatedMod";
}

void lower_arithmetic(const Node& node, ProgramBuilder& builder) {
  std::string_view op = node.op();
  if (op == "Mod") op = node.attributes().get_int("fmod") != 0 ? "TruncatedMod" : "FloorMod";
  if (op == "BitShift") {
    op = node.attributes().get_string("direction") == "LEFT" ? "ShiftLeft" : "ShiftRight";
  }
  const Id left = operand(builder, node.input(0));
  const Id right = operand(builder, node.input(1), right_dims(node));
  const int32_t type = builder.type_of(left);
  if (op == "Mul" && type == TESSERA_FLOAT32) {
    // x * sigmoid(x) is Swish.
    const bool is_left = builder.argument_of("Sigmoid", left) == right;
    if (is_left || builder.argument_of("Sigmoid", right) == left) {
      const Parameters once = {1, 0};
      return set_result(node, builder,
                        builder.apply("Swish", find_unary_loops("Swish", type), type,
                                      {is_left ? right : left}, once));
    }
  }
  // Padding of integers is zero, and a division by it would trap.
  if (is_division(op) && !is_floating(type)) builder.require_row_major();
  set_result(node, builder,
             builder.apply(node.op(), find_binary_loops(op, type), type, {left, right}));
}

void lower_comparison(const Node& node, ProgramBuilder& builder) {
  std::string_view op = node.op();
  Id left = operand(builder, node.input(0));
  Id right = operand(builder, node.input(1), right_dims(node));
  if (op == "Greater" || op == "GreaterOrEqual") {
    op = op == "Greater" ? "Less" : "LessOrEqual";
    std::swap(left, right);
  }
  const int32_t type = builder.type_of(left);
  LoopSet loops = find_predicate_loops(op, type);
  if (loops.is_empty()) loops = find_fallback_loops(op, type);
  set_result(node, builder, builder.apply(node.op(), loops, TESSERA_BOOL, {left, right}));
}

std::string_view power_function(double exponent) {
  if (exponent == 2) return "Square";
  if (exponent == 3) return "Cube";
  if (exponent == 0.5) return "SqrtPow";
  if (exponent == -1) return "Reciprocal";
  return "";
}

void lower_power(const Node& node, ProgramBuilder& builder) {
  const std::optional<double> exponent = plugin::constant_number(node.input(1));
  const Id base = operand(builder, node.input(0));
  const int32_t type = builder.type_of(base);
  const bool is_broadcast = node.input(0).type().dims != builder.result().dims;
  const bool is_float32 = exponent && double{static_cast<float>(*exponent)} == *exponent;
  if (type == TESSERA_FLOAT32 && exponent && !is_float32 && !is_broadcast) {
    // Rounded to float32, an odd exponent could become even.
    const Id wide = converted(builder, base, TESSERA_FLOAT64);
    const Id power =
        builder.apply("Pow", find_binary_loops("Pow", TESSERA_FLOAT64), TESSERA_FLOAT64,
                      {wide, builder.number(TESSERA_FLOAT64, *exponent)});
    return set_result(node, builder, power);
  }
  if (type == TESSERA_FLOAT32 && exponent && !is_broadcast) {
    const std::string_view function = power_function(*exponent);
    const Id power = function.empty()
                         ? builder.apply("Pow", find_arithmetic_loops("Pow", type), type,
                                         {base, builder.number(type, *exponent)})
                         : builder.apply("Pow", find_unary_loops(function, type), type, {base});
    return set_result(node, builder, power);
  }
  const bool is_integer = type == TESSERA_INT32 || type == TESSERA_INT64;
  if (is_integer && exponent == 2.0 && !is_broadcast) {
    return set_result(node, builder,
                      builder.apply("Pow", find_binary_loops("Mul", type), type, {base, base}));
  }
  const Id right = operand(builder, node.input(1), right_dims(node));
  if (builder.type_of(right) != type) refuse("takes base and exponent of one type only");
  set_result(node, builder,
             builder.apply("Pow", find_binary_loops("Pow", type), type, {base, right}));
}

void lower_prelu(const Node& node, ProgramBuilder& builder) {
  std::optional<std::vector<int64_t>> dims;
  std::vector<int64_t> slope = node.input(1).type().dims;
  const size_t rank = node.input(0).type().dims.size();
  if (node.version() < kFirstBroadcastingPRelu && slope.size() == 1 && rank >= 2) {
    slope.resize(rank - 1, 1);
    dims = slope;
  }
  const Id x = operand(builder, node.input(0));
  const Id right = operand(builder, node.input(1), dims);
  const int32_t type = builder.type_of(x);
  set_result(node, builder,
             builder.apply("PRelu", find_binary_loops("PRelu", type), type, {x, right}));
}

// --- Quantisation --------------------------------------------------------------------------------

// The dimensions of a scale or zero point of a node, aligned with its input.
std::vector<int64_t> quantization_dims(const Node& node, const Value& value) {
  const std::vector<int64_t> given = value.type().dims;
  const size_t rank = node.input(0).type().dims.size();
  std::vector<int64_t> dims(rank, 1);
  const plugin::Attributes attributes = node.attributes();
  const int64_t axis = attributes.get_int("axis", 1);
  const int64_t block = attributes.get_int("block_size");
  // A list of one scale is one scale.
  if (given.size() < 2 && value.type().elements() == 1) return dims;
  if (given.size() != 1 || block != 0) refuse("takes scales of blocks in no program of elements");
  dims[plugin::normalized_axis(axis, rank)] = given[0];
  return dims;
}

// The zero point, which is 0 if it is left out.
Id zero_point(const Node& node, ProgramBuilder& builder, int32_t type) {
  const Value value = node.input(2);
  if (!value.is_present()) return builder.number(type, 0);
  return builder.read(value, quantization_dims(node, value));
}

Id scale(const Node& node, ProgramBuilder& builder) {
  const Id given = builder.read(node.input(1), quantization_dims(node, node.input(1)));
  return converted(builder, given, TESSERA_FLOAT32);
}

void lower_dequantize(const Node& node, ProgramBuilder& builder) {
  const Id x = builder.read(node.input(0));
  const int32_t type = builder.type_of(x);
  const int32_t result = node.output(0).type().data_type;
  node.attributes().find("output_dtype");  // the type of the output says it
  if (type == TESSERA_INT32 && result != TESSERA_FLOAT32) {
    refuse("takes int32 with results of float32 only, because others would be rounded twice");
  }
  set_result(node, builder,
             builder.apply("DequantizeLinear", find_dequantize_loops(type), TESSERA_FLOAT32,
                           {x, scale(node, builder), zero_point(node, builder, type)}));
}

void lower_quantize(const Node& node, ProgramBuilder& builder) {
  const int32_t type = node.output(0).type().data_type;
  const plugin::Attributes attributes = node.attributes();
  attributes.find("output_dtype");  // the type of the output says it
  attributes.find("saturate");      // of 8-bit floats
  // Quotients of com.microsoft are of float32 always, others of the type of the scale.
  const int64_t precision = attributes.get_int("precision");
  const int32_t scale_type = node.input(1).type().data_type;
  constexpr int64_t kFloat32InOnnx = 1;
  const bool has_narrow_scale = node.domain().empty() && is_half(scale_type);
  if (precision == 0 ? has_narrow_scale : precision != kFloat32InOnnx) {
    refuse("computes quotients of float32 only");
  }
  const Id x = converted(builder, builder.read(node.input(0)), TESSERA_FLOAT32);
  set_result(node, builder,
             builder.apply("QuantizeLinear", find_quantize_loops(type), type,
                           {x, scale(node, builder), zero_point(node, builder, type)}));
}

// --- Variadic functions, Where and Clip ----------------------------------------------------------

void lower_variadic(const Node& node, ProgramBuilder& builder) {
  const std::string_view op = node.op() == "Sum" || node.op() == "Mean" ? "Add" : node.op();
  Id sum = operand(builder, node.input(0));
  const int32_t type = builder.type_of(sum);
  for (size_t index = 1; index < node.input_count(); ++index) {
    const Id next = operand(builder, node.input(index));
    sum = builder.apply(node.op(), find_binary_loops(op, type), type, {sum, next});
  }
  if (node.op() == "Mean") {
    const Id count = builder.number(type, static_cast<double>(node.input_count()));
    sum = builder.apply(node.op(), find_arithmetic_loops("Div", type), type, {sum, count});
  } else if (node.input_count() == 1 && !is_half(node.input(0).type().data_type)) {
    return set_copy(node, builder, sum);
  }
  set_result(node, builder, sum);
}

void lower_where(const Node& node, ProgramBuilder& builder) {
  const Id condition = builder.read(node.input(0));
  const Id yes = builder.read(node.input(1));
  const Id no = builder.read(node.input(2));
  const int32_t type = builder.type_of(yes);
  set_result(node, builder,
             builder.apply("Where", find_select_loops(plugin::element_bytes(type)), type,
                           {condition, yes, no}));
}

// The bounds if none are given: infinities are beyond them.
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

void lower_clip(const Node& node, ProgramBuilder& builder) {
  const int32_t given = node.input(0).type().data_type;
  Id x = operand(builder, node.input(0));
  const int32_t type = builder.type_of(x);
  if (node.version() < kFirstClipInputs) {
    if (given != TESSERA_FLOAT32) refuse("takes bounds in attributes for float32 only");
  } else {
    check_bound(node.input(1));
    check_bound(node.input(2));
  }
  const auto [low, high] = plugin::clip_bounds(node);
  const bool are_numbers = low && high && !std::isnan(*low) && !std::isnan(*high);
  if (type == TESSERA_FLOAT32 && are_numbers) {
    const Parameters bounds = {static_cast<float>(*low), static_cast<float>(*high)};
    return set_result(node, builder,
                      builder.apply("Clip", find_unary_loops("Clip", type), type, {x}, bounds));
  }
  bool is_copy = true;
  const auto bound = [&](std::string_view op, size_t input, double otherwise) {
    const bool is_given = node.input(input).is_present();
    if (!is_given && node.version() >= kFirstClipInputs) return;
    const std::vector<int64_t> ones(builder.result().dims.size(), 1);
    const Id limit =
        is_given ? operand(builder, node.input(input), ones) : builder.number(type, otherwise);
    x = builder.apply("Clip", find_binary_loops(op, type), type, {x, limit});
    is_copy = false;
  };
  bound("ClipMin", 1, -largest_of(given));
  bound("ClipMax", 2, largest_of(given));
  if (is_copy) return set_copy(node, builder, x);
  set_result(node, builder, x);
}

using Lower = void (*)(const Node& node, ProgramBuilder& builder);

const std::map<std::string_view, Lower> kOthers = {
    {"Add", lower_arithmetic},
    {"And", lower_comparison},
    {"BitShift", lower_arithmetic},
    {"BitwiseAnd", lower_arithmetic},
    {"BitwiseOr", lower_arithmetic},
    {"BitwiseXor", lower_arithmetic},
    {"Cast", lower_cast},
    {"CastLike", lower_cast},
    {"Clip", lower_clip},
    {"DequantizeLinear", lower_dequantize},
    {"Div", lower_arithmetic},
    {"Dropout", lower_dropout},
    {"Equal", lower_comparison},
    {"Greater", lower_comparison},
    {"GreaterOrEqual", lower_comparison},
    {"Identity", lower_identity},
    {"IsInf", lower_predicate},
    {"IsNaN", lower_predicate},
    {"Less", lower_comparison},
    {"LessOrEqual", lower_comparison},
    {"Max", lower_variadic},
    {"Mean", lower_variadic},
    {"Min", lower_variadic},
    {"Mod", lower_arithmetic},
    {"Mul", lower_arithmetic},
    {"Or", lower_comparison},
    {"PRelu", lower_prelu},
    {"Pow", lower_power},
    {"QuantizeLinear", lower_quantize},
    {"Sub", lower_arithmetic},
    {"Sum", lower_variadic},
    {"Where", lower_where},
    {"Xor", lower_comparison},
};

Lower find_lowering(const Node& node) {
  if (is_quantization(node)) return kOthers.at(node.op());
  if (!node.domain().empty()) return nullptr;
  if (kFunctions.contains(node.op())) return lower_unary;
  const auto found = kOthers.find(node.op());
  return found == kOthers.end() ? nullptr : found->second;
}

}  // namespace

bool is_quantization(const Node& node) {
  if (!node.domain().empty() && node.domain() != "com.microsoft") return false;
  return node.op() == "QuantizeLinear" || node.op() == "DequantizeLinear";
}

Value elementwise_result(const Node& node) {
  return find_lowering(node) != nullptr ? node.output(0) : Value(nullptr, -1);
}

void lower_node(const Node& node, ProgramBuilder& builder) {
  const Lower lower = find_lowering(node);
  if (lower == nullptr) refuse("there is no native kernel for this op");
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Value input = node.input(index);
    if (input.is_present() && !input.type().is_known()) refuse("takes tensors of known shape only");
  }
  if (!node.output(0).is_present()) refuse("has no output to compute");
  if (!node.output(0).type().is_known()) refuse("takes tensors of known shape only");
  builder.begin_node(node);
  lower(node, builder);
}

}  // namespace tessera::native
