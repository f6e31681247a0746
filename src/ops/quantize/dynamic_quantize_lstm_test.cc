#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

// Two steps of one sequence of three features, a state of two.
std::vector<Tensor> lstm_inputs() {
  return {floats({2, 1, 3}, {1, -2, 0.5F, 0, 1, 3}),
          unsigned_bytes({1, 3, 8}, {0, 7,  14, 21, 28, 35, 2, 9,  16, 23, 30, 37,
                                     4, 11, 18, 25, 32, 39, 6, 13, 20, 27, 34, 1}),
          unsigned_bytes({1, 2, 8}, {0, 11, 22, 33, 44, 5, 16, 27, 38, 49, 10, 21, 32, 43, 4, 15}),
          Tensor(),
          Tensor(),
          Tensor(),
          Tensor(),
          Tensor(),
          floats({0.0625F}),
          unsigned_bytes({1}, {17}),
          floats({0.125F}),
          unsigned_bytes({1}, {25})};
}

void expect_near(const Tensor& found, const std::vector<float>& expected) {
  EXPECT_THAT(values(found), Pointwise(FloatNear(2e-6F), expected));
}

// The expected numbers come from the definition in NumPy, in float64.
TEST(DynamicQuantizeLSTM, RoundsInputAndState) {
  const std::vector<Tensor> outputs =
      run_microsoft("DynamicQuantizeLSTM", attributes_of({{"hidden_size", 2}}), lstm_inputs(), 3);
  expect_near(outputs[0], {-0.018879F, -0.026715F, 0.16211F, -0.52519F});
  expect_near(outputs[1], {0.16211F, -0.52519F});
  expect_near(outputs[2], {0.860454F, -1.240121F});
}

TEST(DynamicQuantizeLSTM, TakesBiasStatesAndPeepholes) {
  std::vector<Tensor> inputs = lstm_inputs();
  std::vector<float> bias(16);
  for (size_t index = 0; index < bias.size(); ++index) {
    bias[index] = static_cast<float>(index) / 16;
  }
  inputs[3] = floats({1, 16}, bias);
  inputs[5] = floats({1, 1, 2}, {0.5F, -0.25F});
  inputs[6] = inputs[5];
  inputs[7] = floats({1, 6}, {0, 0.125F, 0.25F, 0.375F, 0.5F, 0.625F});
  const std::vector<Tensor> outputs =
      run_microsoft("DynamicQuantizeLSTM", attributes_of({{"direction", "reverse"}}), inputs, 3);
  expect_near(outputs[0], {0.377411F, -0.118568F, 0.438177F, -0.535222F});
  expect_near(outputs[2], {1.301517F, -0.461253F});
}

TEST(DynamicQuantizeLSTM, HasScalesByColumn) {
  std::vector<Tensor> inputs = lstm_inputs();
  inputs[8] = floats({1, 8}, std::vector<float>(8, 0.0625F));
  inputs[9] = unsigned_bytes({1, 8}, std::vector<uint8_t>(8, 17));
  const Tensor y = run_microsoft("DynamicQuantizeLSTM", {}, inputs)[0];
  expect_near(y, {-0.018879F, -0.026715F, 0.16211F, -0.52519F});
}

TEST(DynamicQuantizeLSTM, RefusesWhatDoesNotFit) {
  const auto refusal = [](Shape weights, Shape state_weights, Shape scales) {
    const InferInput none;
    return microsoft_refusal(
        "DynamicQuantizeLSTM", attributes_of({{"hidden_size", 2}}),
        {floating({5, 1, 3}), bytewise(std::move(weights)), bytewise(std::move(state_weights)),
         none, none, none, none, none, floating(std::move(scales)), bytewise({1}), floating({1}),
         bytewise({1})});
  };
  EXPECT_EQ(refusal({1, 3, 8}, {1, 2, 8}, {1, 8}), "");
  EXPECT_THAT(refusal({1, 8, 3}, {1, 2, 8}, {1}), HasSubstr("expected shape [1x3x8]"));
  EXPECT_THAT(refusal({1, 3, 8}, {1, 8, 2}, {1}), HasSubstr("second axis of 2"));
  EXPECT_THAT(refusal({1, 3, 8}, {1, 2, 8}, {2}), HasSubstr("'W_scale'"));
  EXPECT_THAT(refusal({1, 3, 8}, {1, 2, 8}, {1, 4}), HasSubstr("'W_scale'"));
}

}  // namespace
}  // namespace tessera::ops
