// Elementwise functions of one or several tensors, which broadcast, and BatchNormalization.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grid.h"
#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// Definitions: the number of INPUTS, the element types a_type to e_type and y_type, and the
// expression RESULT of a to e, alpha and beta.
constexpr const char* kSource = R"(
#define INPUT(name) __global const uchar *name##_base, ulong name##_at
#define LOAD(name) \
  const name##_type name = AT(const name##_type, name##_base, name##_at)[GRID_POSITION(name)]

KERNEL void map_elements(INPUT(a),
#if INPUTS > 1
                         INPUT(b),
#endif
#if INPUTS > 2
                         INPUT(c),
#endif
#if INPUTS > 3
                         INPUT(d), INPUT(e),
#endif
                         __global uchar *y_base, ulong y_at, float alpha, float beta,
                         GRID_PARAMETERS, AXES(a_stride)
#if INPUTS > 1
                         , AXES(b_stride)
#endif
#if INPUTS > 2
                         , AXES(c_stride)
#endif
#if INPUTS > 3
                         , AXES(d_stride), AXES(e_stride)
#endif
) {
  GRID_BEGIN
  GRID_BASE(a)
#if INPUTS > 1
  GRID_BASE(b)
#endif
#if INPUTS > 2
  GRID_BASE(c)
#endif
#if INPUTS > 3
  GRID_BASE(d)
  GRID_BASE(e)
#endif
  GRID_LOOP {
    LOAD(a);
#if INPUTS > 1
    LOAD(b);
#endif
#if INPUTS > 2
    LOAD(c);
#endif
#if INPUTS > 3
    LOAD(d);
    LOAD(e);
#endif
    AT(y_type, y_base, y_at)[GRID_INDEX] = RESULT;
  }
}
)";

constexpr int32_t kFirstNumpyBroadcast = 7;

// One launch of `map_elements`.
struct Map {
  std::string result;                                          // in OpenCL C
  std::vector<std::pair<Place, std::vector<int64_t>>> inputs;  // with their dimensions
  std::vector<std::string> input_types;                        // of OpenCL C
  Place output;
  std::vector<int64_t> output_dims;
  std::string output_type = "float";
  float alpha = 0;
  float beta = 0;
};

Launch launch_of(const Map& map) {
  static const std::vector<std::string_view> kNames = {"a", "b", "c", "d", "e"};
  Launch launch{.source = kSource, .name = "map_elements"};
  StridedSpace space{.size = map.output_dims, .strides = {}};
  std::string types;
  for (size_t index = 0; index < map.inputs.size(); ++index) {
    const auto& [place, dims] = map.inputs[index];
    launch.arguments.emplace_back(place);
    space.strides.push_back(plugin::broadcast_strides(dims, map.output_dims.size()));
    types += define(std::string(kNames[index]) + "_type", map.input_types[index]);
  }
  launch.arguments.insert(launch.arguments.end(), {map.output, map.alpha, map.beta});
  // The output takes part in merging axes: it is dense.
  const std::vector<std::string_view> names(
      kNames.begin(), kNames.begin() + static_cast<std::ptrdiff_t>(map.inputs.size()));
  const Grid grid = make_grid(space, names);
  launch.arguments.insert(launch.arguments.end(), grid.arguments.begin(), grid.arguments.end());
  launch.definitions = grid.definitions + types + define("y_type", map.output_type) +
                       define("INPUTS", static_cast<int64_t>(map.inputs.size())) +
                       define("RESULT", "(" + map.result + ")");
  launch.groups = grid.groups;
  launch.group_items = grid.group_items;
  return launch;
}

// --- Functions of one tensor ---------------------------------------------------------------------

struct UnaryFunction {
  const char* result;
  // Attributes that become alpha and beta.
  const char* alpha = nullptr;
  const char* beta = nullptr;
};

// As src/ops defines them: a comparison with NaN is false and leads to the branch that keeps it.
const std::map<std::string_view, UnaryFunction> kUnary = {
    {"Abs", {"fabs(a)"}},
    {"Acos", {"acos(a)"}},
    {"Acosh", {"acosh(a)"}},
    {"Asin", {"asin(a)"}},
    {"Asinh", {"asinh(a)"}},
    {"Atan", {"atan(a)"}},
    {"Atanh", {"atanh(a)"}},
    {"Ceil", {"ceil(a)"}},
    {"Cos", {"cos(a)"}},
    {"Cosh", {"cosh(a)"}},
    {"Elu", {"a < 0 ? alpha * expm1(a) : a", "alpha"}},
    {"Erf", {"erf(a)"}},
    {"Exp", {"exp(a)"}},
    {"Floor", {"floor(a)"}},
    {"HardSigmoid",
     {"alpha * a + beta < 0 ? 0.0f : alpha * a + beta > 1 ? 1.0f : alpha * a + beta", "alpha",
      "beta"}},
    {"HardSwish", {"a * (a / 6 + 0.5f < 0 ? 0.0f : a / 6 + 0.5f > 1 ? 1.0f : a / 6 + 0.5f)"}},
    {"LeakyRelu", {"a < 0 ? alpha * a : a", "alpha"}},
    {"Log", {"log(a)"}},
    {"Mish", {"a * tanh((a < 0 ? 0.0f : a) + log1p(exp(-fabs(a))))"}},
    {"Neg", {"-a"}},
    {"Reciprocal", {"1.0f / a"}},
    {"Relu", {"a < 0 ? 0.0f : a"}},
    {"Round", {"rint(a)"}},
    {"Selu", {"beta * (a <= 0 ? alpha * expm1(a) : a)", "alpha", "gamma"}},
    {"Sigmoid", {"1.0f / (1.0f + exp(-a))"}},
    {"Sign", {"a > 0 ? 1.0f : a < 0 ? -1.0f : a"}},
    {"Sin", {"sin(a)"}},
    {"Sinh", {"sinh(a)"}},
    {"Softplus", {"(a < 0 ? 0.0f : a) + log1p(exp(-fabs(a)))"}},
    {"Softsign", {"a / (1.0f + fabs(a))"}},
    {"Sqrt", {"sqrt(a)"}},
    {"Swish", {"a / (1.0f + exp(-alpha * a))", "alpha"}},
    {"Tan", {"tan(a)"}},
    {"Tanh", {"tanh(a)"}},
    {"ThresholdedRelu", {"a > alpha ? a : 0.0f", "alpha"}},
};
// 1 + erf(z) would cancel for negative z; erfc(-z) is the same value without cancellation.
constexpr const char* kGelu = "0.5f * a * erfc(-a * M_SQRT1_2_F)";
// 0.5 * a * (1 + tanh(z)) is a / (1 + exp(-2 * z)), which is exact at infinities.
constexpr const char* kGeluByTanh =
    "a / (1.0f + exp(-2.0f * M_2_SQRTPI_F * M_SQRT1_2_F * (a + 0.044715f * a * a * a)))";
// The upper bound wins if the bounds are in the wrong order.
constexpr const char* kClip = "SMALLER(LARGER(a, alpha), beta)";

void offer_unary(const Offers& offers, const Node& node, const std::string& result, float alpha,
                 float beta) {
  require_floats(node.input(0));
  const std::vector<int64_t> dims = node.output(0).type().dims;
  Offer offer(offers, node);
  const Place input = offer.read(node.input(0));
  const Place output = offer.write(node.output(0));
  offer.launch(launch_of({.result = result,
                          .inputs = {{input, dims}},
                          .input_types = {"float"},
                          .output = output,
                          .output_dims = dims,
                          .alpha = alpha,
                          .beta = beta}));
  offer.allow_in_place(input);
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

void offer_function(const Offers& offers, const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (node.op() == "Gelu") {
    const bool is_by_tanh = attributes.get_string("approximate") == "tanh";
    return offer_unary(offers, node, is_by_tanh ? kGeluByTanh : kGelu, 0, 0);
  }
  if (node.op() == "Clip") {
    const plugin::ClipBounds bounds = plugin::clip_bounds(node);
    if (!bounds.min || !bounds.max) {
      throw Failure(TESSERA_UNSUPPORTED, "clips to constant bounds only");
    }
    return offer_unary(offers, node, kClip, static_cast<float>(*bounds.min),
                       static_cast<float>(*bounds.max));
  }
  const UnaryFunction& function = kUnary.at(node.op());
  const auto attribute = [&](const char* name) {
    return name == nullptr ? 0.0F : attributes.get_float(name);
  };
  offer_unary(offers, node, function.result, attribute(function.alpha), attribute(function.beta));
}

// --- Functions of several tensors ----------------------------------------------------------------

enum class Operands : uint8_t { Floats, Numbers, Bools };  // Numbers: integers too

struct BinaryFunction {
  const char* result;
  Operands operands = Operands::Floats;
};

const std::map<std::string_view, BinaryFunction> kBinary = {
    {"Add", {"a + b", Operands::Numbers}},
    {"And", {"a != 0 && b != 0", Operands::Bools}},
    // Division of integers by zero ends the process on some devices.
    {"Div", {"a / b"}},
    {"Equal", {"a == b", Operands::Numbers}},
    {"Greater", {"a > b", Operands::Numbers}},
    {"GreaterOrEqual", {"a >= b", Operands::Numbers}},
    {"Less", {"a < b", Operands::Numbers}},
    {"LessOrEqual", {"a <= b", Operands::Numbers}},
    {"Max", {"LARGER(a, b)", Operands::Numbers}},
    {"Min", {"SMALLER(a, b)", Operands::Numbers}},
    {"Mul", {"a * b", Operands::Numbers}},
    {"Or", {"a != 0 || b != 0", Operands::Bools}},
    {"PRelu", {"a > 0 ? a : a * b"}},
    // If denormals are zero, PoCL's pow() is wrong for them.
    {"Pow", {"pow(a == 0 ? copysign(0.0f, a) : a, b)"}},
    {"Sub", {"a - b", Operands::Numbers}},
    {"Sum", {"a + b"}},
    {"Xor", {"(a != 0) != (b != 0)", Operands::Bools}},
};

// The type of OpenCL C with which such a function reads the tensor.
std::string operand_type(const Value& value, Operands operands) {
  const int32_t type = value.type().data_type;
  if (operands == Operands::Bools && type == TESSERA_BOOL) return "uchar";
  if (operands != Operands::Bools && type == TESSERA_FLOAT32) return "float";
  if (operands == Operands::Numbers && type == TESSERA_INT32) return "int";
  if (operands == Operands::Numbers && type == TESSERA_INT64) return "long";
  throw Failure(TESSERA_UNSUPPORTED, "has no kernels for this element type");
}

void require_numpy_broadcast(const Node& node) {
  if (node.version() >= kFirstNumpyBroadcast) return;
  for (size_t index = 1; index < node.input_count(); ++index) {
    if (node.input(index).type().dims == node.output(0).type().dims) continue;
    throw Failure(TESSERA_UNSUPPORTED, "broadcasts as ONNX does from version 7 on only");
  }
}

// Ops with more than two inputs are computed pair by pair in the output.
void offer_binary(const Offers& offers, const Node& node) {
  require_numpy_broadcast(node);
  const BinaryFunction& function = kBinary.at(node.op());
  const Value output = node.output(0);
  const std::vector<int64_t> output_dims = output.type().dims;
  const std::string output_type =
      output.type().data_type == TESSERA_BOOL ? "uchar" : operand_type(output, function.operands);
  if (node.input_count() < 2) {
    throw Failure(TESSERA_UNSUPPORTED, "computes two inputs or more only");
  }
  Offer offer(offers, node);
  std::vector<Place> places;
  for (size_t index = 0; index < node.input_count(); ++index) {
    places.push_back(offer.read(node.input(index)));
  }
  const Place target = offer.write(output);
  std::pair<Place, std::vector<int64_t>> left = {places[0], node.input(0).type().dims};
  std::string left_type = operand_type(node.input(0), function.operands);
  for (size_t index = 1; index < node.input_count(); ++index) {
    const Value right = node.input(index);
    offer.launch(launch_of({.result = function.result,
                            .inputs = {left, {places[index], right.type().dims}},
                            .input_types = {left_type, operand_type(right, function.operands)},
                            .output = target,
                            .output_dims = output_dims,
                            .output_type = output_type}));
    left = {target, output_dims};
    left_type = output_type;
  }
  // With more inputs, the first launch would overwrite an input that a later one reads.
  const bool fits = node.input_count() == 2 && node.input(0).type() == output.type();
  if (fits) offer.allow_in_place(places[0]);
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

void offer_where(const Offers& offers, const Node& node) {
  static const std::map<int64_t, std::string> kTypes = {
      {1, "uchar"}, {2, "ushort"}, {4, "uint"}, {8, "ulong"}};
  const std::vector<int64_t> dims = node.output(0).type().dims;
  const auto type = kTypes.find(plugin::element_bytes(node.output(0).type().data_type));
  if (type == kTypes.end()) {
    throw Failure(TESSERA_UNSUPPORTED, "has no kernels for this element type");
  }
  Offer offer(offers, node);
  Map map{.result = "a != 0 ? b : c",
          .input_types = {"uchar", type->second, type->second},
          .output_dims = dims,
          .output_type = type->second};
  for (size_t index = 0; index < 3; ++index) {
    const Value input = node.input(index);
    map.inputs.emplace_back(offer.read(input), input.type().dims);
  }
  map.output = offer.write(node.output(0));
  offer.launch(launch_of(map));
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

// --- BatchNormalization --------------------------------------------------------------------------

void offer_batch_normalization(const Offers& offers, const Node& node) {
  for (size_t index = 0; index < 5; ++index) require_floats(node.input(index));
  for (size_t index = 1; index < node.output_count(); ++index) {
    const Value output = node.output(index);
    if (output.is_present() && (output.is_needed() || !output.consumers().empty())) {
      throw Failure(TESSERA_UNSUPPORTED, "has no training mode of BatchNormalization");
    }
  }
  if (node.attributes().get_int("training_mode") != 0) {
    throw Failure(TESSERA_UNSUPPORTED, "has no training mode of BatchNormalization");
  }
  const std::vector<int64_t> dims = node.output(0).type().dims;
  Offer offer(offers, node);
  Map map{.result = "(a - d) / sqrt(e + alpha) * b + c",
          .input_types = std::vector<std::string>(5, "float"),
          .output_dims = dims,
          .alpha = node.attributes().get_float("epsilon", 1e-5F)};
  const Place input = offer.read(node.input(0));
  map.inputs.emplace_back(input, dims);
  // One number for each channel, which is axis 1.
  std::vector<int64_t> per_channel(dims.size(), 1);
  if (dims.size() > 1) per_channel[1] = dims[1];
  for (size_t index = 1; index < 5; ++index) {
    const Value parameter = node.input(index);
    if (parameter.type().dims != std::vector<int64_t>{dims.size() > 1 ? dims[1] : 1}) {
      throw Failure(TESSERA_UNSUPPORTED, "normalises with one number for each channel only");
    }
    map.inputs.emplace_back(offer.read(parameter), per_channel);
  }
  map.output = offer.write(node.output(0));
  offer.launch(launch_of(map));
  offer.allow_in_place(input);
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

}  // namespace

void propose_elementwise(const Offers& offers) {
  plugin::ProposeContext& context = offers.context();
  context.for_each(
      {"Abs",   "Acos",           "Acosh",       "Asin",      "Asinh", "Atan",      "Atanh",
       "Ceil",  "Clip",           "Cos",         "Cosh",      "Elu",   "Erf",       "Exp",
       "Floor", "Gelu",           "HardSigmoid", "HardSwish", "Log",   "LeakyRelu", "Mish",
       "Neg",   "Relu",           "Reciprocal",  "Round",     "Selu",  "Sigmoid",   "Sign",
       "Sin",   "Sinh",           "Softplus",    "Softsign",  "Sqrt",  "Swish",     "Tan",
       "Tanh",  "ThresholdedRelu"},
      [&](const Node& node) { offer_function(offers, node); });
  context.for_each({"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
                    "LessOrEqual", "Max", "Min", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Xor"},
                   [&](const Node& node) { offer_binary(offers, node); });
  context.for_each({"Where"}, [&](const Node& node) { offer_where(offers, node); });
  context.for_each({"BatchNormalization"},
                   [&](const Node& node) { offer_batch_normalization(offers, node); });
}

}  // namespace tessera::opencl
