#include "supported_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "accuracy.h"
#include "tessera/backend_ops.h"

namespace tessera::openvino {

namespace {

using plugin::Node;
using plugin::Type;
using plugin::Value;

// Sets of inputs as bits.
constexpr unsigned input(unsigned index) { return 1U << index; }
constexpr unsigned kInputs1to4 = input(1) | input(2) | input(3) | input(4);

struct SupportedOp {
  std::string_view op;
  int first_version;
  int last_version;
  unsigned parameters = 0;  // inputs that must be constants: axes, sizes, limits
  unsigned indices = 0;     // inputs of integers
  unsigned bools = 0;       // inputs of bools
};

// In alphabetical order. Every other input and every output is float32. ReduceL1, ReduceL2 and
// ReduceLogSum are missing, because OpenVINO does not apply their function if they reduce axes of
// one element.
constexpr SupportedOp kSupportedOps[] = {
    {"Abs", 6, 13},
    {"Add", 7, 14},
    {"AveragePool", 7, 22},
    {"BatchNormalization", 9, 15},
    {"Ceil", 6, 13},
    {"Clip", 6, 13, input(1) | input(2)},
    {"Concat", 4, 13},
    {"Conv", 1, 22},
    {"ConvTranspose", 1, 22},
    {"DepthToSpace", 1, 13},
    {"Div", 7, 14},
    {"Elu", 6, 22},
    {"Erf", 9, 13},
    {"Exp", 6, 13},
    {"Expand", 8, 13, input(1)},
    {"Flatten", 1, 21},
    {"Floor", 6, 13},
    {"GRU", 7, 22},
    {"Gather", 1, 13, 0, input(1)},
    {"Gelu", 20, 20},
    {"Gemm", 7, 13},
    {"GlobalAveragePool", 1, 22},
    {"GlobalMaxPool", 1, 22},
    {"HardSigmoid", 6, 22},
    {"HardSwish", 14, 22},
    {"Identity", 1, 21},
    {"InstanceNormalization", 6, 22},
    {"LRN", 1, 13},
    {"LSTM", 7, 22},
    {"LayerNormalization", 17, 17},
    {"LeakyRelu", 6, 16},
    {"Log", 6, 13},
    {"LogSoftmax", 1, 13},
    {"MatMul", 1, 13},
    {"Max", 6, 13},
    {"MaxPool", 1, 22},
    {"Mean", 6, 13},
    {"Min", 6, 13},
    {"Mish", 18, 22},
    {"Mul", 7, 14},
    {"Neg", 6, 13},
    {"PRelu", 7, 16},
    {"Pad", 2, 21, kInputs1to4},
    {"Pow", 7, 15},
    {"Reciprocal", 6, 13},
    {"ReduceLogSumExp", 1, 18, input(1)},
    {"ReduceMax", 1, 20, input(1)},
    {"ReduceMean", 1, 18, input(1)},
    {"ReduceMin", 1, 20, input(1)},
    {"ReduceProd", 1, 18, input(1)},
    {"ReduceSum", 1, 13, input(1)},
    {"ReduceSumSquare", 1, 18, input(1)},
    {"Relu", 6, 14},
    {"Reshape", 5, 21, input(1)},
    {"Selu", 6, 22},
    {"Sigmoid", 6, 13},
    {"Slice", 1, 13, kInputs1to4},
    {"Softmax", 1, 13},
    {"Softplus", 1, 22},
    {"Softsign", 1, 22},
    {"SpaceToDepth", 1, 13},
    {"Split", 2, 18, input(1)},
    {"Sqrt", 6, 13},
    {"Squeeze", 1, 21, input(1)},
    {"Sub", 7, 14},
    {"Sum", 6, 13},
    {"Tanh", 6, 13},
    {"Tile", 6, 13, input(1)},
    {"Transpose", 1, 21},
    {"Unsqueeze", 1, 21, input(1)},
    {"Where", 9, 16, 0, 0, input(0)},
};

// More axes than its kernels support.
constexpr size_t kMaxAxes = 6;

const SupportedOp* find_op(std::string_view op) {
  const auto* const found = std::lower_bound(
      std::begin(kSupportedOps), std::end(kSupportedOps), op,
      [](const SupportedOp& entry, std::string_view name) { return entry.op < name; });
  return found != std::end(kSupportedOps) && found->op == op ? found : nullptr;
}

bool is_among(unsigned set, size_t index) { return index < 32 && ((set >> index) & 1U) != 0; }

std::optional<std::string> explain_type(const Value& value, std::string_view side, size_t index) {
  const Type type = value.type();
  const std::string name = std::string(side) + " " + std::to_string(index);
  if (!type.is_known()) return "the dimensions of " + name + " are not known before running";
  if (type.dims.size() > kMaxAxes) {
    return name + " has " + std::to_string(type.dims.size()) + " axes, expected at most " +
           std::to_string(kMaxAxes);
  }
  if (type.elements() == 0) return name + " has no elements";
  return std::nullopt;
}

std::optional<std::string> explain_input(const SupportedOp& op, const Node& node, size_t index) {
  const Value value = node.input(index);
  if (!value.is_present()) return std::nullopt;
  const int32_t type = value.type().data_type;
  const bool is_whole = type == TESSERA_INT32 || type == TESSERA_INT64;
  const std::string name = "input " + std::to_string(index);
  if (value.sparse_format() != TESSERA_DENSE) return name + " may be stored sparsely";
  if (is_among(op.parameters, index)) {
    const bool is_here = value.is_constant() && value.constant() != nullptr;
    if (!is_here && value.type().elements() != 0) return name + " is not a constant";
    return std::nullopt;
  }
  if (auto reason = explain_type(value, "input", index)) return reason;
  if (is_among(op.indices, index)) {
    return is_whole ? std::nullopt : std::optional(name + " is not int32 or int64");
  }
  if (is_among(op.bools, index)) {
    return type == TESSERA_BOOL ? std::nullopt : std::optional(name + " is not bool");
  }
  return type == TESSERA_FLOAT32 ? std::nullopt : std::optional(name + " is not float32");
}

std::optional<std::string> explain_output(const Node& node, size_t index) {
  const Value value = node.output(index);
  if (!value.is_present()) return std::nullopt;
  if (value.type().data_type != TESSERA_FLOAT32) {
    return "output " + std::to_string(index) + " is not float32";
  }
  return explain_type(value, "output", index);
}

bool has_one_output(const Node& node) {
  for (size_t index = 1; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) return false;
  }
  return node.output(0).is_present();
}

bool are_all(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

std::optional<std::string> explain_recurrence(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (node.input(4).is_present()) return "it computes no sequences of different lengths";
  if (node.input(7).is_present()) return "it computes no peephole connections";
  if (!attributes.has("hidden_size")) return "it needs the attribute hidden_size";
  if (attributes.has("activations")) return "it computes with the default activations only";
  if (attributes.has("clip")) return "it computes without clipping only";
  if (attributes.get_int("input_forget") != 0)
    return "it does not couple the input and forget gates (input_forget)";
  if (attributes.get_int("layout") != 0) return "it computes with the sequence as first axis only";
  return std::nullopt;
}

std::optional<std::string> explain_window(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (node.op() == "AveragePool" && !are_all(attributes.get_ints("dilations"), 1)) {
    return "it does not average dilated windows";
  }
  if (node.op() == "AveragePool" && attributes.get_int("ceil_mode") != 0 &&
      attributes.get_int("count_include_pad") != 0) {
    return "it divides sums of windows that leave the padded input by the size of whole windows";
  }
  if (node.op() == "MaxPool" && attributes.get_int("storage_order") != 0) {
    return "it computes in row-major order only";
  }
  if (node.op() != "ConvTranspose") return std::nullopt;
  if (attributes.has("output_shape")) return "it computes no convolution to a shape that is given";
  if (attributes.get_string("auto_pad", "NOTSET") != "NOTSET") {
    return "it computes with explicit pads only";
  }
  return std::nullopt;
}

// Before version 13, softmax is over all axes from the given one on; OpenVINO uses only that one.
std::optional<std::string> explain_softmax(const Node& node) {
  if (node.version() >= 13) return std::nullopt;
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const std::optional<size_t> axis =
      plugin::find_axis(node.attributes().get_int("axis", 1), dims.size());
  for (size_t behind = axis ? *axis + 1 : dims.size(); behind < dims.size(); ++behind) {
    if (dims[behind] != 1) return "it computes no softmax over several axes";
  }
  return std::nullopt;
}

std::optional<std::string> explain_lost_nan(const Node& node) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr std::string_view kLosers[] = {"Exp",       "GlobalMaxPool", "HardSigmoid", "LogSoftmax",
                                          "Max",       "MaxPool",       "Min",         "ReduceMax",
                                          "ReduceMin", "Softmax"};
  const bool is_loser =
      std::find(std::begin(kLosers), std::end(kLosers), node.op()) != std::end(kLosers);
  if (is_loser) {
    return "its " + std::string(node.op()) + " does not keep NaN, which only nan=fast allows";
  }
  if (node.op() == "Clip") {
    const plugin::ClipBounds bounds = plugin::clip_bounds(node);
    if (bounds.min == -kLargest || bounds.max == kLargest) {
      return "it takes the largest number for no bound, and keeps infinities";
    }
  }
  if (node.op() == "Log") return "its Log is finite for denormals, which are zero elsewhere";
  // OpenVINO reads C even if beta is 0.
  if (node.op() == "Gemm" && node.input(2).is_present() &&
      node.attributes().get_float("beta", 1) == 0) {
    return "it multiplies NaN in C by a beta of 0, which only nan=fast allows";
  }
  return std::nullopt;
}

// Attributes that OpenVINO does not implement as ONNX defines them.
std::optional<std::string> explain_attributes(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  const std::string_view op = node.op();
  if (op == "LSTM" || op == "GRU") return explain_recurrence(node);
  if (op == "AveragePool" || op == "MaxPool" || op == "ConvTranspose") return explain_window(node);
  if (op == "Softmax" || op == "LogSoftmax") return explain_softmax(node);
  if (op == "BatchNormalization" && attributes.get_int("training_mode") != 0) {
    return "it computes no statistics of its own";
  }
  if (op == "LRN") {
    if (attributes.get_int("size") % 2 == 0) {
      return "it normalises over an odd number of channels only";
    }
    const float bias = attributes.get_float("bias", 1);
    if (bias != std::floor(bias)) return "it normalises with a whole number as bias only";
  }
  if (op == "Reshape" && node.output(0).type().dims.empty()) {
    return "it does not make scalars of tensors";
  }
  if (op == "Pad" && attributes.get_string("mode", "constant") == "wrap") {
    return "it does not pad by wrapping around";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> explain_unsupported(const plugin::Graph& graph, const plugin::Node& node,
                                               int32_t nan) {
  const SupportedOp* op = node.domain().empty() ? find_op(node.op()) : nullptr;
  if (op == nullptr) return "OpenVINO regions do not contain this op";
  if (node.version() < op->first_version || node.version() > op->last_version) {
    return "it computes versions " + std::to_string(op->first_version) + " to " +
           std::to_string(op->last_version) + ", found " + std::to_string(node.version());
  }
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (auto reason = explain_input(*op, node, index)) return reason;
  }
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (auto reason = explain_output(node, index)) return reason;
  }
  const bool may_have_more = op->op == "Split" || op->op == "LSTM" || op->op == "GRU";
  if (!may_have_more && !has_one_output(node)) return "it returns the first output only";
  if (nan == TESSERA_NAN_EXACT) {
    if (auto reason = explain_lost_nan(node)) return reason;
  }
  if (std::string reason = explain_inexact(graph, node); !reason.empty()) return reason;
  return explain_attributes(node);
}

}  // namespace tessera::openvino
