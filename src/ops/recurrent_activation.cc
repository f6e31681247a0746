#include "ops/recurrent_activation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/error.h"

namespace tessera::ops {
namespace {

struct Known {
  const char* name;  // in lower case
  double (*function)(double, double, double);
  std::optional<double> alpha;  // the default; nullopt if the function has no such parameter
  std::optional<double> beta;
};

double sigmoid(double x, double, double) { return 1 / (1 + std::exp(-x)); }
double tanh(double x, double, double) { return std::tanh(x); }
double relu(double x, double, double) { return x < 0 ? 0 : x; }
double affine(double x, double alpha, double beta) { return alpha * x + beta; }
double leaky_relu(double x, double alpha, double) { return x < 0 ? alpha * x : x; }
double thresholded_relu(double x, double alpha, double) { return x > alpha ? x : 0; }
double scaled_tanh(double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }
double hard_sigmoid(double x, double alpha, double beta) {
  return std::clamp(alpha * x + beta, 0.0, 1.0);
}
double elu(double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }
double softsign(double x, double, double) { return x / (1 + std::abs(x)); }
double softplus(double x, double, double) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

const std::array<Known, 11> kKnown = {{{"sigmoid", sigmoid, {}, {}},
                                       {"tanh", tanh, {}, {}},
                                       {"relu", relu, {}, {}},
                                       {"affine", affine, 1.0, 0.0},
                                       {"leakyrelu", leaky_relu, 0.01, {}},
                                       {"thresholdedrelu", thresholded_relu, 1.0, {}},
                                       {"scaledtanh", scaled_tanh, 1.0, 1.0},
                                       {"hardsigmoid", hard_sigmoid, 0.2, 0.5},
                                       {"elu", elu, 1.0, {}},
                                       {"softsign", softsign, {}, {}},
                                       {"softplus", softplus, {}, {}}}};

// ONNX's names. Files differ in their use of upper and lower case.
const Known& find_known(const Node& node, std::string_view name) {
  const auto is_same_letter = [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) == right;
  };
  const auto found = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) {
    return std::ranges::equal(name, std::string_view(known.name), is_same_letter);
  });
  if (found == kKnown.end()) {
    throw Error(ErrorKind::InvalidModel, location_of(node) + ", attribute 'activations'",
                "expected names of activation functions (Sigmoid, Tanh, Relu, Affine, LeakyRelu, "
                "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign or Softplus), found '" +
                    std::string(name) + "'");
  }
  return *found;
}

// Takes the next given value, for a function that has the parameter.
double next_parameter(const std::vector<float>* given, size_t& used,
                      const std::optional<double>& fallback) {
  if (!fallback) return 0;
  if (given == nullptr || used >= given->size()) return *fallback;
  return (*given)[used++];
}

// The `count` names in the node's attribute; nullptr if the defaults apply.
const std::vector<std::string>* given_names(const Node& node, std::span<const char* const> defaults,
                                            size_t count) {
  const std::vector<std::string>* given = node.attributes.find_strings("activations");
  if (given == nullptr) return nullptr;
  // ONNX's default for RNN has two functions, for two directions, whatever the number of
  // directions.
  const bool is_default = defaults.size() == 1 && given->size() == 2 &&
                          (*given)[0] == defaults[0] && (*given)[1] == defaults[0];
  if (is_default) return nullptr;
  if (given->size() != count) {
    throw Error(
        ErrorKind::InvalidModel, location_of(node) + ", attribute 'activations'",
        "expected " + std::to_string(count) + " names, found " + std::to_string(given->size()));
  }
  return given;
}

}  // namespace

std::pmr::vector<Activation> read_activations(const Node& node,
                                              std::span<const char* const> defaults,
                                              int64_t directions,
                                              std::pmr::memory_resource* memory) {
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  const std::vector<std::string>* names = given_names(node, defaults, count);
  size_t used_alphas = 0;
  size_t used_betas = 0;
  std::pmr::vector<Activation> activations(memory);
  for (size_t index = 0; index < count; ++index) {
    const std::string_view name =
        names != nullptr ? std::string_view((*names)[index]) : defaults[index % defaults.size()];
    const Known& known = find_known(node, name);
    activations.push_back(
        {known.function,
         next_parameter(node.attributes.find_floats("activation_alpha"), used_alphas, known.alpha),
         next_parameter(node.attributes.find_floats("activation_beta"), used_betas, known.beta)});
  }
  return activations;
}

}  // namespace tessera::ops
