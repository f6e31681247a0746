#include <cmath>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes with_functions(std::vector<std::string> names, std::vector<float> alphas = {},
                          const std::string& direction = "forward") {
  Attributes attributes = attributes_of(
      {{"hidden_size", 1}, {"direction", direction}, {"activations", std::move(names)}});
  if (!alphas.empty()) attributes.set("activation_alpha", std::move(alphas));
  return attributes;
}

const Tensor kOne = floats({1, 1, 1}, {1});
const Tensor kTwo = floats({1, 1, 1}, {2});
const Tensor kRnnBias = floats({1, 2}, {0.5F, 0.25F});
const Tensor kRnnInput = floats({2, 1, 1}, {1, -5});

TEST(Rnn, AddsBothBiases) {
  const auto outputs =
      run_op("RNN", 22, with_functions({"Relu"}),
             {kRnnInput, kOne, kTwo, kRnnBias, Tensor(), floats({1, 1, 1}, {10})}, 2);
  // 1 + 2 * 10 + 0.75; -5 + 2 * 21.75 + 0.75.
  EXPECT_THAT(values(outputs[0]), ElementsAre(21.75F, 39.25F));
  EXPECT_THAT(values(outputs[1]), ElementsAre(39.25F));
}

// Import gives every RNN two activation functions; one direction uses the first.
TEST(Rnn, DefaultIsTanh) {
  const auto outputs =
      run_op("RNN", 7, attributes_of({{"hidden_size", 1}}), {kRnnInput, kOne, kTwo});
  const double first = std::tanh(1.0);
  EXPECT_NEAR(values(outputs[0])[0], first, 1e-7);
  EXPECT_NEAR(values(outputs[0])[1], std::tanh(-5 + 2 * first), 1e-7);
}

TEST(Rnn, NeedsNoFeatures) {
  const auto outputs = run_op("RNN", 22, with_functions({"Relu"}),
                              {floats({2, 1, 0}, {}), floats({1, 1, 0}, {}), kTwo, kRnnBias}, 1);
  // 0.75; 2 * 0.75 + 0.75.
  EXPECT_THAT(values(outputs[0]), ElementsAre(0.75F, 2.25F));
}

TEST(Rnn, ParametersGoToTheFunctionsThatHaveThem) {
  const Tensor weights = floats({2, 1, 1}, {1, 1});
  const Tensor none = floats({2, 1, 1}, {0, 0});
  const auto outputs =
      run_op("RNN", 14, with_functions({"Relu", "LeakyRelu"}, {0.5F}, "bidirectional"),
             {kRnnInput, weights, none}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 1, 0, -2.5F));
  EXPECT_THAT(values(outputs[1]), ElementsAre(0, 1));
}

TEST(Rnn, ReverseClipAndLengths) {
  Attributes attributes = with_functions({"Affine"}, {1}, "reverse");
  attributes.set("clip", 4.0F);
  const Tensor input = floats({3, 1, 1}, {1, -5, 100});
  const Tensor lengths = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{2});
  const auto outputs = run_op("RNN", 14, attributes, {input, kOne, kOne, Tensor(), lengths}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(-3, -4, 0));
  EXPECT_THAT(values(outputs[1]), ElementsAre(-3));
}

// A threshold that is given bounds the sums, also if it is 0.
TEST(Rnn, ClipOfZero) {
  Attributes attributes = with_functions({"Tanh"});
  attributes.set("clip", 0.0F);
  const auto outputs = run_op("RNN", 14, attributes, {kRnnInput, kOne, kOne}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 0));
}

// Without steps, the last state is the first.
TEST(Rnn, NoSteps) {
  const auto outputs = run_op("RNN", 14, with_functions({"Relu"}),
                              {floats({0, 1, 1}, {}), kOne, kOne, Tensor(), Tensor(), kTwo}, 2);
  EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_THAT(values(outputs[1]), ElementsAre(2));
}

TEST(Rnn, WrongModels) {
  const auto inputs = [](const Shape& w) {
    return std::vector<InferInput>{typed(DataType::Float32, Shape{2, 3, 5}),
                                   typed(DataType::Float32, w),
                                   typed(DataType::Float32, Shape{1, 4, 4})};
  };
  EXPECT_EQ(*infer_op("RNN", 14, {}, inputs({1, 4, 5}), 2)[1].type.shape, (Shape{1, 3, 4}));
  EXPECT_THROW(infer_op("RNN", 14, {}, inputs({1, 12, 5}), 2), Error);
  const auto wrong = [&](const std::vector<std::string>& functions) {
    EXPECT_THROW(infer_op("RNN", 14, with_functions(functions), inputs({1, 4, 5}), 2), Error)
        << testing::PrintToString(functions);
  };
  wrong({"Relu", "Relu"});
  wrong({"Sine"});
  wrong({});
}

}  // namespace
}  // namespace tessera::ops
