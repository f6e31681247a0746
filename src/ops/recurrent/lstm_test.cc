#include <cmath>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// One unit; with identity activations all gates are 0.5 * (sum of their inputs).
Attributes linear_lstm() {
  return attributes_of({{"hidden_size", 1},
                        {"activations", std::vector<std::string>{"Affine", "Affine", "Affine"}},
                        {"activation_alpha", std::vector<float>{1, 1, 1}},
                        {"activation_beta", std::vector<float>{0, 0, 0}}});
}

const Tensor kLstmWeights = floats({1, 4, 1}, {1, 1, 1, 1});
const Tensor kNoRecurrence = floats({1, 4, 1}, {0, 0, 0, 0});

// c1 = x*x, h1 = x*c1; then c2 = x2*c1 + x2*x2.
TEST(Lstm, StepsForwardAndBackward) {
  const Tensor input = floats({2, 1, 1}, {2, 3});
  auto outputs = run_op("LSTM", 14, linear_lstm(), {input, kLstmWeights, kNoRecurrence}, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(8, 63));
  EXPECT_THAT(values(outputs[1]), ElementsAre(63));
  EXPECT_THAT(values(outputs[2]), ElementsAre(21));
  Attributes reverse = linear_lstm();
  reverse.set("direction", "reverse");
  outputs = run_op("LSTM", 14, reverse, {input, kLstmWeights, kNoRecurrence}, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(44, 27));
}

TEST(Lstm, ShortSequencesEndInZeros) {
  const Tensor lengths = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{1});
  const auto outputs =
      run_op("LSTM", 14, linear_lstm(),
             {floats({2, 1, 1}, {2, 3}), kLstmWeights, kNoRecurrence, Tensor(), lengths}, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(8, 0));
  EXPECT_THAT(values(outputs[1]), ElementsAre(8));
  const Tensor wrong = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{3});
  EXPECT_THROW(run_op("LSTM", 14, linear_lstm(),
                      {floats({2, 1, 1}, {2, 3}), kLstmWeights, kNoRecurrence, Tensor(), wrong}, 3),
               Error);
}

TEST(Lstm, DefaultsAreSigmoidAndTanh) {
  const auto outputs = run_op("LSTM", 14, attributes_of({{"hidden_size", 1}}),
                              {floats({1, 1, 1}, {1}), kLstmWeights, kNoRecurrence}, 3);
  const double gate = 1 / (1 + std::exp(-1.0));
  const double cell = gate * std::tanh(1.0);
  EXPECT_NEAR(values(outputs[2])[0], cell, 1e-6);
  EXPECT_NEAR(values(outputs[1])[0], gate * std::tanh(cell), 1e-6);
}

TEST(Lstm, BatchFirstOnlyMovesAxes) {
  Attributes attributes = linear_lstm();
  attributes.set("layout", int64_t{1});
  const auto outputs =
      run_op("LSTM", 14, attributes, {floats({2, 1, 1}, {2, 3}), kLstmWeights, kNoRecurrence}, 2);
  EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{2, 1, 1, 1}));
  EXPECT_EQ(outputs[1].dims(), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_THAT(values(outputs[0]), ElementsAre(8, 27));
}

TEST(Lstm, SymbolsAndBadAttributes) {
  const std::vector<InferInput> inputs = {
      typed(DataType::Float32, Shape{Dim::symbol("time"), Dim::symbol("batch"), 5}),
      typed(DataType::Float32, Shape{1, 12, 5}), typed(DataType::Float32, Shape{1, 12, 3})};
  EXPECT_EQ(*infer_op("LSTM", 14, {}, inputs)[0].type.shape,
            (Shape{Dim::symbol("time"), 1, Dim::symbol("batch"), 3}));
  EXPECT_THROW(
      infer_op("LSTM", 14,
               attributes_of({{"activations", std::vector<std::string>{"Sigmoid", "Tan", "Tanh"}}}),
               inputs),
      Error);
  EXPECT_THROW(infer_op("LSTM", 14,
                        attributes_of(
                            {{"direction", "bidirectional"},
                             {"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}}}),
                        inputs),
               Error);
}

}  // namespace
}  // namespace tessera::ops
