#include "ops/recurrent_activation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "tessera/error.h"

namespace tessera::ops {
namespace {

struct Known {
  const char* name;  // in lower case
  double (*function)(double, double, double);
  std::optional<double> alpha;  // the default; nullopt where the function has no such parameter
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

// ONNX's names, of which files write the case in several ways.
const Known& find_known(const Node& node, const std::string& name) {
  std::string lower = name;
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  const auto found = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&](const Known& known) { return lower == known.name; });
  if (found == kKnown.end()) {
    throw Error(ErrorKind::InvalidModel, place(node) + ", attribute 'activations'",
                "expected names of activation functions (Sigmoid, Tanh, Relu, Affine, LeakyRelu, "
                "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign or Softplus), found '" +
                    name + "'");
  }
  return *found;
}

// The next of the values given, for a function that has the parameter.
double next_parameter(const std::vector<float>* given, size_t& used,
                      const std::optional<double>& fallback) {
  if (!fallback) return 0;
  if (given == nullptr || used >= given->size()) return *fallback;
  return (*given)[used++];
}

// The names in the node's attribute, or the defaults of all directions.
std::vector<std::string> function_names(const Node& node, std::span<const char* const> defaults,
                                        int64_t directions) {
  std::vector<std::string> names;
  for (int64_t direction = 0; direction < directions; ++direction) {
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const std::vector<std::string>* given = node.attributes.find_strings("activations");
  if (given == nullptr) return names;
  // ONNX's default for RNN has a function for each of two directions, however many there are.
  if (defaults.size() == 1 && *given == std::vector<std::string>(2, defaults[0])) return names;
  if (given->size() != names.size()) {
    throw Error(ErrorKind::InvalidModel, place(node) + ", attribute 'activations'",
                "expected " + std::to_string(names.size()) + " names, found " +
                    std::to_string(given->size()));
  }
  return *given;
}

}  // namespace

std::vector<Activation> read_activations(const Node& node, std::span<const char* const> defaults,
                                         int64_t directions) {
  size_t used_alphas = 0;
  size_t used_betas = 0;
  std::vector<Activation> activations;
  for (const std::string& name : function_names(node, defaults, directions)) {
    const Known& known = find_known(node, name);
    activations.push_back(
        {known.function,
         next_parameter(node.attributes.find_floats("activation_alpha"), used_alphas, known.alpha),
         next_parameter(node.attributes.find_floats("activation_beta"), used_betas, known.beta)});
  }
  return activations;
}

}  // namespace tessera::ops
