#include "codegen/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kDims = {40, 100};

TEST(LowerActivation, ComputesWhatTheReferenceDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto one = [](const char* name, float value) { return attributes_of({{name, value}}); };
  const auto two = [](const char* first, float a, const char* second, float b) {
    return attributes_of({{first, a}, {second, b}});
  };
  const std::vector<LoweringCase> cases = {
      {"Celu", 12, {{kDims}}},
      {"Celu", 28, {{kDims}}, one("alpha", 1.7F)},
      {"Celu", 28, {{kDims}}, one("alpha", 0.01F)},
      {"Celu", 28, {{kDims}}, one("alpha", 0.0F)},
      {"Celu", 28, {{kDims}}, one("alpha", -2.0F)},
      {"Celu", 28, {{kDims}}, one("alpha", infinity)},
      {"Elu", 6, {{kDims}}},
      {"Elu", 22, {{kDims}}, one("alpha", 1.3F)},
      {"Elu", 22, {{kDims}}, one("alpha", -infinity)},
      {"Gelu", 20, {{kDims}}},
      // 1 + tanh(z), which the reference computes in float64, cancels.
      {"Gelu", 20, {{kDims}}, attributes_of({{"approximate", std::string("tanh")}}), 1e-15},
      {"HardSigmoid", 6, {{kDims}}},
      {"HardSigmoid", 22, {{kDims}}, two("alpha", 1.0F / 6, "beta", 0.5F)},
      {"HardSigmoid", 22, {{kDims}}, two("alpha", -3.0e38F, "beta", infinity)},
      {"HardSwish", 14, {{kDims}}},
      {"LeakyRelu", 6, {{kDims}}},
      {"LeakyRelu", 16, {{kDims}}, one("alpha", 0.2F)},
      {"LeakyRelu", 16, {{kDims}}, one("alpha", -1.0F / 3)},
      {"LeakyRelu", 16, {{kDims}}, one("alpha", 3.0e38F)},
      {"LeakyRelu", 16, {{kDims}}, one("alpha", 1.0e-30F)},
      {"LeakyRelu", 16, {{kDims}}, one("alpha", infinity)},
      {"Mish", 18, {{kDims}}},
      {"Relu", 6, {{kDims}}},
      {"Relu", 14, {{kDims}}},
      {"Selu", 6, {{kDims}}},
      {"Selu", 22, {{kDims}}, two("alpha", 0.3F, "gamma", 7.1F)},
      {"Selu", 22, {{kDims}}, two("alpha", 3.0e38F, "gamma", 3.0e38F)},
      {"Selu", 22, {{kDims}}, two("alpha", infinity, "gamma", 0.0F)},
      {"Shrink", 9, {{kDims}}},
      {"Shrink", 9, {{kDims}}, two("bias", 1.5F, "lambd", 2.25F)},
      {"Sigmoid", 13, {{kDims}}},
      {"Softplus", 1, {{kDims}}},
      {"Softsign", 1, {{kDims}}},
      {"Swish", 24, {{kDims}}},
      {"Swish", 24, {{kDims}}, one("alpha", 1.702F)},
      {"Swish", 24, {{kDims}}, one("alpha", -0.3F)},
      {"Swish", 24, {{kDims}}, one("alpha", 0.0F)},
      {"Tanh", 13, {{kDims}}},
      {"ThresholdedRelu", 10, {{kDims}}},
      {"ThresholdedRelu", 22, {{kDims}}, one("alpha", -0.5F)},
  };
  check_cases(activation_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
