#include "base/eltwise.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/accuracy.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::algorithm;
using plugin::Node;
using plugin::Type;
using plugin::Value;

namespace {

EltwiseAnswer refusal(const std::string& reason) { return {std::nullopt, reason}; }

EltwiseAnswer function_of(size_t input, algorithm kind, float alpha = 0, float beta = 0) {
  return {EltwiseNode{{{kind, alpha, beta}}, input}, ""};
}

using Answer = std::function<EltwiseAnswer(const Node& node)>;

// A function without attributes.
Answer plain(algorithm kind, float alpha = 0, float beta = 0) {
  return [=](const Node&) { return function_of(0, kind, alpha, beta); };
}

// A function whose alpha is the attribute of that name.
Answer with_alpha(algorithm kind) {
  return
      [=](const Node& node) { return function_of(0, kind, node.attributes().get_float("alpha")); };
}

EltwiseAnswer celu(const Node& node) {
  if (node.attributes().get_float("alpha", 1) != 1) {
    return refusal("oneDNN has Celu for alpha = 1 only, where it is Elu");
  }
  return function_of(0, algorithm::eltwise_elu, 1);
}

EltwiseAnswer hard_sigmoid(const Node& node) {
  return function_of(0, algorithm::eltwise_hardsigmoid, node.attributes().get_float("alpha"),
                     node.attributes().get_float("beta"));
}

EltwiseAnswer gelu(const Node& node) {
  const bool is_tanh = node.attributes().get_string("approximate") == "tanh";
  return function_of(0, is_tanh ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
}

EltwiseAnswer clip(const Node& node) {
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const Value bound = node.input(index);
    if (bound.is_present() && !constant_float(bound)) {
      return refusal("clips by constant float32 bounds only");
    }
  }
  const plugin::ClipBounds bounds = plugin::clip_bounds(node);
  const auto low = static_cast<float>(*bounds.min);
  const auto high = static_cast<float>(*bounds.max);
  if (!(low <= high)) return refusal("clips only if min <= max");
  return function_of(0, algorithm::eltwise_clip_v2, low, high);
}

EltwiseAnswer power(const Node& node) {
  // Often an integer tensor.
  const std::optional<double> exponent = constant_scalar(node.input(1));
  if (!exponent || node.output(0).type() != node.input(0).type()) {
    return refusal("takes powers with one constant exponent only");
  }
  if (*exponent == 2) return function_of(0, algorithm::eltwise_square);
  if (*exponent == 0.5) {
    return refusal("oneDNN computes the power of 0.5 as a square root: NaN for -infinity");
  }
  const auto rounded = static_cast<float>(*exponent);
  if (static_cast<double>(rounded) != *exponent) {
    return refusal("takes exponents of float32 only, found " + std::to_string(*exponent));
  }
  return function_of(0, algorithm::eltwise_pow, 1, rounded);
}

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::isnormal(number) && std::isnormal(1 / number) &&
         std::abs(std::frexp(number, &exponent)) == 0.5F;
}

// `number` op x, or x op `number`, as a function of x; nullopt if it is none.
std::optional<Eltwise> arithmetic(std::string_view op, float number, bool is_number_left) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (op == "Add" || op == "Sum") return Eltwise{algorithm::eltwise_linear, 1, number};
  if (op == "Mul") return Eltwise{algorithm::eltwise_linear, number, 0};
  if (op == "Sub") {
    return is_number_left ? Eltwise{algorithm::eltwise_linear, -1, number}
                          : Eltwise{algorithm::eltwise_linear, 1, -number};
  }
  if (op == "Div") {
    // The library multiplies by reciprocals, which is exact for powers of two only.
    if (!is_power_of_two(number)) return std::nullopt;
    if (is_number_left) return Eltwise{algorithm::eltwise_pow, number, -1};
    return Eltwise{algorithm::eltwise_linear, 1 / number, 0};
  }
  if (std::isnan(number)) return std::nullopt;
  if (op == "Max") return Eltwise{algorithm::eltwise_clip_v2, number, kInfinity};
  if (op == "Min") return Eltwise{algorithm::eltwise_clip_v2, -kInfinity, number};
  return std::nullopt;
}

// An op of two inputs, one of which is a constant of one element.
EltwiseAnswer with_number(const Node& node) {
  if (node.input_count() != 2) return refusal("");
  for (const size_t position : {size_t{1}, size_t{0}}) {
    const std::optional<float> number = constant_float(node.input(position));
    if (!number || node.output(0).type() != node.input(1 - position).type()) continue;
    const std::optional<Eltwise> function = arithmetic(node.op(), *number, position == 0);
    if (function) return {EltwiseNode{{*function}, 1 - position}, ""};
  }
  return refusal("");
}

const std::map<std::string_view, Answer>& answers() {
  static const std::map<std::string_view, Answer> kAnswers = {
      {"Abs", plain(algorithm::eltwise_abs)},
      {"Add", with_number},
      {"Celu", celu},
      {"Clip", clip},
      {"Div", with_number},
      {"Elu", with_alpha(algorithm::eltwise_elu)},
      {"Exp", plain(algorithm::eltwise_exp)},
      {"Gelu", gelu},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", plain(algorithm::eltwise_hardswish, 1.0F / 6, 0.5F)},
      {"LeakyRelu", with_alpha(algorithm::eltwise_relu)},
      {"Log", plain(algorithm::eltwise_log)},
      {"Max", with_number},
      {"Min", with_number},
      {"Mish", plain(algorithm::eltwise_mish)},
      {"Mul", with_number},
      {"Neg", plain(algorithm::eltwise_linear, -1, -0.0F)},  // -0 + 0 would be 0
      {"Pow", power},
      {"Reciprocal", plain(algorithm::eltwise_pow, 1, -1)},
      {"Relu", plain(algorithm::eltwise_relu)},
      {"Round", plain(algorithm::eltwise_round)},
      {"Sigmoid", plain(algorithm::eltwise_logistic)},
      {"Softplus", plain(algorithm::eltwise_soft_relu, 1)},
      {"Sqrt", plain(algorithm::eltwise_sqrt)},
      {"Sub", with_number},
      {"Sum", with_number},
      {"Swish", with_alpha(algorithm::eltwise_swish)},
      {"Tanh", plain(algorithm::eltwise_tanh)},
  };
  return kAnswers;
}

}  // namespace

bool Eltwise::keeps_zero() const {
  switch (algorithm) {
    case algorithm::eltwise_soft_relu:
    case algorithm::eltwise_logistic:
    case algorithm::eltwise_exp:
    case algorithm::eltwise_log:
      return false;
    case algorithm::eltwise_linear:
      return beta == 0 && !std::signbit(beta) && std::isfinite(alpha);
    case algorithm::eltwise_pow:
      return beta > 0 && std::isfinite(alpha);
    case algorithm::eltwise_clip_v2:
      return alpha <= 0 && beta >= 0;
    case algorithm::eltwise_hardsigmoid:
      return beta <= 0;
    default:
      return true;
  }
}

std::vector<Eltwise> keeping_nan(const Eltwise& function, bool follows_matmul) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool is_relu = function.algorithm == algorithm::eltwise_relu && function.alpha == 0;
  // The library gives infinity for the exponential of NaN, and NaN for the Gelu of infinity.
  const bool is_loser = function.algorithm == algorithm::eltwise_hardsigmoid ||
                        function.algorithm == algorithm::eltwise_exp ||
                        function.algorithm == algorithm::eltwise_gelu_erf;
  if (is_loser) return {};
  if (!is_relu && function.algorithm != algorithm::eltwise_clip_v2) return {function};
  // A bound that is the largest finite number, the default of old versions, affects infinities.
  const bool has_low = is_relu || function.alpha > -kInfinity;
  const bool has_high = !is_relu && function.beta < kInfinity;
  if (!has_low && !has_high) return {{algorithm::eltwise_linear, 1, 0}};
  // NaN must become NaN again: possible only with 0 as lower bound.
  const float low = is_relu ? 0 : function.alpha;
  if (!follows_matmul || !has_low || low != 0) return {};
  std::vector<Eltwise> functions;
  // NaN becomes -infinity, which the minimum passes.
  if (has_high) functions.push_back({algorithm::eltwise_clip_v2, -kInfinity, function.beta});
  // Numbers that are not above 0 are multiplied by 0: NaN stays, and -infinity becomes NaN.
  functions.push_back({.algorithm = algorithm::eltwise_relu, .is_prelu = true});
  return functions;
}

EltwiseAnswer find_eltwise(const Node& node, int32_t nan, bool follows_matmul) {
  if (!node.domain().empty()) return refusal("");
  const auto found = answers().find(node.op());
  if (found == answers().end()) return refusal("");
  EltwiseAnswer answer = found->second(node);
  if (!answer.node) return answer;
  if (const std::string reason = explain_inexact(answer.node->functions.front()); !reason.empty()) {
    return refusal(reason);
  }
  if (nan == TESSERA_NAN_FAST) return answer;
  if (node.op() == "Log") return refusal("oneDNN's Log of denormals is not exact: only nan=fast");
  answer.node->functions = keeping_nan(answer.node->functions.front(), follows_matmul);
  return answer.node->functions.empty() ? refusal(explain_lost_nan(node.op())) : answer;
}

std::string explain_lost_nan(std::string_view what) {
  return "oneDNN's " + std::string(what) + " does not keep NaN, which only nan=fast allows";
}

std::optional<double> constant_scalar(const Value& value) {
  if (value.type().data_type == TESSERA_FLOAT64) return std::nullopt;
  return plugin::constant_number(value);
}

std::optional<float> constant_float(const Value& value) {
  if (!value.is_constant() || value.constant() == nullptr) return std::nullopt;
  const Type type = value.type();
  if (type.data_type != TESSERA_FLOAT32 || type.elements() != 1) return std::nullopt;
  return value.constant_as<float>()[0];
}

}  // namespace tessera::onednn
