#include "ops/contrib/fused_activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "ops/elementwise/activation_functions.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

template <double (*kFunction)(double)>
void apply_plain(std::span<double> elements, double, double) {
  for (double& x : elements) x = kFunction(x);
}

double fused_tanh(double x) { return std::tanh(x); }

void apply_celu(std::span<double> elements, double alpha, double) {
  for (double& x : elements) x = x < 0 ? alpha * std::expm1(x / alpha) : x;
}

void apply_parametric_softplus(std::span<double> elements, double alpha, double beta) {
  for (double& x : elements) x = alpha * activation::softplus(beta * x);
}

void apply_scaled_tanh(std::span<double> elements, double alpha, double beta) {
  for (double& x : elements) x = alpha * std::tanh(beta * x);
}

void apply_selu(std::span<double> elements, double alpha, double gamma) {
  for (double& x : elements) x = gamma * (x <= 0 ? alpha * std::expm1(x) : x);
}

void apply_clip(std::span<double> elements, double low, double high) {
  for (double& x : elements) x = x < low ? low : x > high ? high : x;
}

void apply_elu(std::span<double> elements, double alpha, double) {
  for (double& x : elements) x = x < 0 ? alpha * std::expm1(x) : x;
}

void apply_hard_sigmoid(std::span<double> elements, double alpha, double beta) {
  for (double& x : elements) x = alpha * x + beta;
  apply_clip(elements, 0, 1);
}

void apply_leaky_relu(std::span<double> elements, double alpha, double) {
  for (double& x : elements) x = x < 0 ? alpha * x : x;
}

void apply_thresholded_relu(std::span<double> elements, double alpha, double) {
  for (double& x : elements) x = x > alpha || std::isnan(x) ? x : 0;
}

constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct KnownActivation {
  std::string_view name;
  FusedActivation activation;  // with the default parameters
  size_t parameters = 0;
};

constexpr std::array kKnownActivations = {
    KnownActivation{"Celu", {apply_celu, 1.0F}, 1},
    KnownActivation{"Clip", {apply_clip, -kNoBound, kNoBound}, 2},
    KnownActivation{"Elu", {apply_elu, 1.0F}, 1},
    KnownActivation{"HardSigmoid", {apply_hard_sigmoid, 0.2F, 0.5F}, 2},
    KnownActivation{"LeakyRelu", {apply_leaky_relu, 0.01F}, 1},
    KnownActivation{"ParametricSoftplus", {apply_parametric_softplus, 1.0F, 1.0F}, 2},
    KnownActivation{"Relu", {apply_plain<activation::relu>}},
    KnownActivation{"ScaledTanh", {apply_scaled_tanh, 1.0F, 1.0F}, 2},
    // Its second parameter is called gamma.
    KnownActivation{
        "Selu", {apply_selu, 1.67326319217681884765625F, 1.05070102214813232421875F}, 2},
    KnownActivation{"Sigmoid", {apply_plain<activation::sigmoid>}},
    KnownActivation{"Softplus", {apply_plain<activation::softplus>}},
    KnownActivation{"Softsign", {apply_plain<activation::softsign>}},
    KnownActivation{"Tanh", {apply_plain<fused_tanh>}},
    KnownActivation{"ThresholdedRelu", {apply_thresholded_relu, 1.0F}, 1},
};

[[noreturn]] void fail_activation(const Node& node, const std::string& attribute,
                                  const std::string& message) {
  throw Error(ErrorKind::InvalidModel, location_of(node) + ", attribute '" + attribute + "'",
              message);
}

std::string known_names() {
  std::string names;
  for (const KnownActivation& known : kKnownActivations) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace

FusedActivation read_activation(const Node& node) {
  const std::string* const name = node.attributes.find_string("activation");
  if (name == nullptr || name->empty()) return {};
  const auto* const known = std::ranges::find(kKnownActivations, *name, &KnownActivation::name);
  if (known == kKnownActivations.end()) {
    fail_activation(node, "activation",
                    "expected one of " + known_names() + ", found '" + *name + "'");
  }
  FusedActivation result = known->activation;
  if (const auto* const given = node.attributes.find_floats("activation_params")) {
    if (given->size() != known->parameters) {
      fail_activation(node, "activation_params",
                      "expected " + std::to_string(known->parameters) + " numbers for " + *name +
                          ", found " + std::to_string(given->size()));
    }
    if (!given->empty()) result.alpha = given->front();
    if (given->size() > 1) result.beta = given->back();
  }
  if (const float* const alpha = node.attributes.find_float("activation_alpha")) {
    result.alpha = *alpha;
  }
  const char* const second = *name == "Selu" ? "activation_gamma" : "activation_beta";
  if (const float* const beta = node.attributes.find_float(second)) result.beta = *beta;
  return result;
}

}  // namespace tessera::ops
