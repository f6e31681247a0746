// Elementwise ops, alone: fused groups of one node, and kernels of functions that expressions lack.
#include <map>
#include <string>
#include <vector>

#include "grid.h"
#include "offers.h"

namespace tessera::opencl {

using plugin::Node;

namespace {

// Definitions: FUNCTION.
constexpr const char* kElementwiseSource = R"(
KERNEL void map_elements(__global const uchar *x_base, ulong x_at, __global uchar *y_base,
                         ulong y_at, GRID_PARAMETERS, AXES(x_stride)) {
  GRID_BEGIN
  GRID_BASE(x)
  GRID_LOOP {
    AT(float, y_base, y_at)[GRID_INDEX] =
        FUNCTION(AT(const float, x_base, x_at)[GRID_POSITION(x)]);
  }
}
)";

const std::map<std::string_view, const char*> kFunctions = {
    {"Acos", "acos"},   {"Acosh", "acosh"}, {"Asin", "asin"}, {"Asinh", "asinh"}, {"Atan", "atan"},
    {"Atanh", "atanh"}, {"Cosh", "cosh"},   {"Sinh", "sinh"}, {"Tan", "tan"}};

void offer_function(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  const std::vector<int64_t> size = {node.output(0).type().elements()};
  const Grid grid = make_grid({.size = size, .strides = {{1}}}, {"x"});
  Offer offer(offers, node);
  const Place input = offer.read(node.input(0));
  const Place output = offer.write(node.output(0));
  std::vector<Argument> arguments = {input, output};
  arguments.insert(arguments.end(), grid.arguments.begin(), grid.arguments.end());
  offer.launch({.definitions = grid.definitions + define("FUNCTION", kFunctions.at(node.op())),
                .source = kElementwiseSource,
                .name = "map_elements",
                .arguments = std::move(arguments),
                .groups = grid.groups,
                .group_items = grid.group_items});
  offer.allow_in_place(input);
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

}  // namespace

void propose_elementwise(const Offers& offers) {
  offers.context().for_each(
      {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan"},
      [&](const Node& node) { offer_function(offers, node); });
  offers.context().for_each({"Abs",
                             "Add",
                             "And",
                             "BatchNormalization",
                             "BitShift",
                             "BitwiseAnd",
                             "BitwiseNot",
                             "BitwiseOr",
                             "BitwiseXor",
                             "Cast",
                             "CastLike",
                             "Ceil",
                             "Celu",
                             "Clip",
                             "Cos",
                             "Div",
                             "Elu",
                             "Equal",
                             "Erf",
                             "Exp",
                             "Floor",
                             "Gelu",
                             "Greater",
                             "GreaterOrEqual",
                             "HardSigmoid",
                             "HardSwish",
                             "IsInf",
                             "IsNaN",
                             "LeakyRelu",
                             "Less",
                             "LessOrEqual",
                             "Log",
                             "Max",
                             "Mean",
                             "Min",
                             "Mish",
                             "Mod",
                             "Mul",
                             "Neg",
                             "Not",
                             "Or",
                             "PRelu",
                             "Pow",
                             "Reciprocal",
                             "Relu",
                             "Round",
                             "Selu",
                             "Shrink",
                             "Sigmoid",
                             "Sign",
                             "Sin",
                             "Softplus",
                             "Softsign",
                             "Sqrt",
                             "Sub",
                             "Sum",
                             "Swish",
                             "Tanh",
                             "ThresholdedRelu",
                             "Where",
                             "Xor"},
                            [&](const Node& node) { offer_fused_node(offers, node); });
}

}  // namespace tessera::opencl
