// The unary activation functions of neural networks. unary.cc has the arithmetic functions and the
// shared loops.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "ops/elementwise/activation_functions.h"
#include "ops/elementwise/unary.h"

namespace tessera::ops {
namespace {

using activation::gelu;
using activation::gelu_by_tanh;
using activation::relu;
using activation::sigmoid;
using activation::softplus;
using activation::softsign;

double mish(double x) { return x * std::tanh(softplus(x)); }
double clamped_to_unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
double hard_swish(double x) { return x * clamped_to_unit(x / 6 + 0.5); }

void run_relu(const KernelCall& call) {
  if (!is_integer(call.inputs[0].type)) return run_unary<relu>(call);
  run_on_integers(call, [](auto x) { return x > 0 ? x : decltype(x){0}; });
}

void run_leaky_relu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) x = x < 0 ? alpha * x : x;
  });
}

void run_thresholded_relu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) x = x > alpha ? x : 0;
  });
}

void run_elu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) x = x < 0 ? alpha * std::expm1(x) : x;
  });
}

void run_celu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) {
      const double negative = alpha * std::expm1(x / alpha);
      // If alpha is 0, the quotient and the product of the formula are NaN.
      const double below = negative >= 0 ? 0 : negative;
      x = std::isnan(x) ? x : std::max(0.0, x) + below;
    }
  });
}

void run_selu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    const double gamma = attributes.get_float("gamma");
    for (double& x : elements) x = gamma * (x <= 0 ? alpha * std::expm1(x) : x);
  });
}

void run_hard_sigmoid(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    const double beta = attributes.get_float("beta");
    for (double& x : elements) x = clamped_to_unit(alpha * x + beta);
  });
}

void run_swish(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) x *= sigmoid(alpha * x);
  });
}

void run_shrink(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double lambda = attributes.get_float("lambd");
    const double bias = attributes.get_float("bias");
    for (double& x : elements) x = x < -lambda ? x + bias : x > lambda ? x - bias : 0;
  });
}

void run_gelu(const KernelCall& call) {
  if (call.node.attributes.get_string("approximate") == "tanh") {
    return run_unary<gelu_by_tanh>(call);
  }
  run_unary<gelu>(call);
}

void infer_gelu(InferContext& context) {
  const std::string& approximate = context.node().attributes.get_string("approximate");
  if (approximate != "none" && approximate != "tanh") {
    context.fail("attribute 'approximate': expected 'none' or 'tanh', found '" + approximate + "'");
  }
  infer_same_as_input(context);
}

Op with_floats(Op op, const std::vector<std::pair<const char*, float>>& attributes) {
  for (const auto& [name, value] : attributes) {
    op.attributes.push_back({name, AttributeKind::Float, value});
  }
  return op;
}

Op gelu_op() {
  Op op = unary_op("Gelu", "X", "Y", {20}, kFloatTypes, run_gelu);
  op.attributes = {{"approximate", AttributeKind::String, std::string("none")}};
  op.infer = infer_gelu;
  return op;
}

}  // namespace

std::vector<Op> activation_ops() {
  constexpr TypeSet kShrinkTypes =
      kIntegerTypes | TypeSet{DataType::Float16, DataType::Float32, DataType::Float64};
  const auto op = [](const char* name, std::vector<int> versions, ReferenceKernel kernel) {
    return unary_op(name, "X", "Y", std::move(versions), kFloatTypes, kernel);
  };
  return {
      with_floats(op("Celu", {12, 28}, run_celu), {{"alpha", 1.0F}}),
      non_expansive(keeping_zero(with_floats(op("Elu", {6, 22}, run_elu), {{"alpha", 1.0F}}))),
      non_expansive(keeping_zero(gelu_op())),
      non_expansive(with_floats(op("HardSigmoid", {6, 22}, run_hard_sigmoid),
                                {{"alpha", 0.2F}, {"beta", 0.5F}})),
      non_expansive(keeping_zero(op("HardSwish", {14, 22}, run_unary<hard_swish>))),
      non_expansive(
          keeping_zero(with_floats(op("LeakyRelu", {6, 16}, run_leaky_relu), {{"alpha", 0.01F}}))),
      non_expansive(keeping_zero(op("Mish", {18, 22}, run_unary<mish>))),
      non_expansive(keeping_zero(
          unary_op("Relu", "X", "Y", {6, 13, 14}, kFloatTypes | kSignedIntegerTypes, run_relu))),
      with_floats(op("Selu", {6, 22}, run_selu),
                  {{"alpha", 1.67326319217681884765625F}, {"gamma", 1.05070102214813232421875F}}),
      with_floats(unary_op("Shrink", "input", "output", {9}, kShrinkTypes, run_shrink),
                  {{"bias", 0.0F}, {"lambd", 0.5F}}),
      non_expansive(op("Sigmoid", {6, 13}, run_unary<sigmoid>)),
      non_expansive(op("Softplus", {1, 22}, run_unary<softplus>)),
      non_expansive(keeping_zero(
          unary_op("Softsign", "input", "output", {1, 22}, kFloatTypes, run_unary<softsign>))),
      non_expansive(with_floats(op("Swish", {24}, run_swish), {{"alpha", 1.0F}})),
      non_expansive(keeping_zero(
          unary_op("Tanh", "input", "output", {6, 13}, kFloatTypes, run_unary<std::tanh>))),
      // It is discontinuous at alpha.
      keeping_zero(
          with_floats(op("ThresholdedRelu", {10, 22}, run_thresholded_relu), {{"alpha", 1.0F}})),
  };
}

}  // namespace tessera::ops
