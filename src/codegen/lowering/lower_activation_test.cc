#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kActivationDims = {40, 100};

TEST(LowerActivation, ComputesWhatTheReferenceDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto one = [](const char* name, float value) { return attributes_of({{name, value}}); };
  const auto two = [](const char* first, float a, const char* second, float b) {
    return attributes_of({{first, a}, {second, b}});
  };
  const std::vector<LoweringCase> cases = {
      {"Celu", 12, {{kActivationDims}}},
      {"Celu", 28, {{kActivationDims}}, one("alpha", 1.7F)},
      {"Celu", 28, {{kActivationDims}}, one("alpha", 0.01F)},
      {"Celu", 28, {{kActivationDims}}, one("alpha", 0.0F)},
      {"Celu", 28, {{kActivationDims}}, one("alpha", -2.0F)},
      {"Celu", 28, {{kActivationDims}}, one("alpha", infinity)},
      {"Elu", 6, {{kActivationDims}}},
      {"Elu", 22, {{kActivationDims}}, one("alpha", 1.3F)},
      {"Elu", 22, {{kActivationDims}}, one("alpha", -infinity)},
      {"Gelu", 20, {{kActivationDims}}},
      // 1 + tanh(z), which the reference computes in float64, cancels.
      {"Gelu", 20, {{kActivationDims}}, attributes_of({{"approximate", "tanh"}}), 1e-15},
      {"HardSigmoid", 6, {{kActivationDims}}},
      {"HardSigmoid", 22, {{kActivationDims}}, two("alpha", 1.0F / 6, "beta", 0.5F)},
      {"HardSigmoid", 22, {{kActivationDims}}, two("alpha", -3.0e38F, "beta", infinity)},
      {"HardSwish", 14, {{kActivationDims}}},
      {"LeakyRelu", 6, {{kActivationDims}}},
      {"LeakyRelu", 16, {{kActivationDims}}, one("alpha", 0.2F)},
      {"LeakyRelu", 16, {{kActivationDims}}, one("alpha", -1.0F / 3)},
      {"LeakyRelu", 16, {{kActivationDims}}, one("alpha", 3.0e38F)},
      {"LeakyRelu", 16, {{kActivationDims}}, one("alpha", 1.0e-30F)},
      {"LeakyRelu", 16, {{kActivationDims}}, one("alpha", infinity)},
      {"Mish", 18, {{kActivationDims}}},
      {"Relu", 6, {{kActivationDims}}},
      {"Relu", 14, {{kActivationDims}}},
      {"Selu", 6, {{kActivationDims}}},
      {"Selu", 22, {{kActivationDims}}, two("alpha", 0.3F, "gamma", 7.1F)},
      {"Selu", 22, {{kActivationDims}}, two("alpha", 3.0e38F, "gamma", 3.0e38F)},
      {"Selu", 22, {{kActivationDims}}, two("alpha", infinity, "gamma", 0.0F)},
      {"Shrink", 9, {{kActivationDims}}},
      {"Shrink", 9, {{kActivationDims}}, two("bias", 1.5F, "lambd", 2.25F)},
      {"Sigmoid", 13, {{kActivationDims}}},
      {"Softplus", 1, {{kActivationDims}}},
      {"Softsign", 1, {{kActivationDims}}},
      {"Swish", 24, {{kActivationDims}}},
      {"Swish", 24, {{kActivationDims}}, one("alpha", 1.702F)},
      {"Swish", 24, {{kActivationDims}}, one("alpha", -0.3F)},
      {"Swish", 24, {{kActivationDims}}, one("alpha", 0.0F)},
      {"Tanh", 13, {{kActivationDims}}},
      {"ThresholdedRelu", 10, {{kActivationDims}}},
      {"ThresholdedRelu", 22, {{kActivationDims}}, one("alpha", -0.5F)},
  };
  check_cases(activation_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
