#include <cmath>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// Identity activations, so that expected results can be computed by hand.
Attributes linear(const std::string& direction = "forward") {
  const size_t functions = direction == "bidirectional" ? 4 : 2;
  return attributes_of({{"hidden_size", 1},
                        {"direction", direction},
                        {"activations", std::vector<std::string>(functions, "Affine")},
                        {"activation_alpha", std::vector<float>(functions, 1)},
                        {"activation_beta", std::vector<float>(functions, 0)}});
}

// One unit: update = 0.5, reset = H, hidden = X + reset * H + 4 or X + reset * (H + 4).
const Tensor kGruWeights = floats({1, 3, 1}, {0, 0, 1});
const Tensor kRecurrence = floats({1, 3, 1}, {0, 1, 1});
const Tensor kBias = floats({1, 6}, {0.5F, 0, 0, 0, 0, 4});
const Tensor kGruInput = floats({2, 1, 1}, {3, 1});
const Tensor kStart = floats({1, 1, 1}, {2});

TEST(Gru, ResetsTheStateOrWhatComesOfIt) {
  const std::vector<Tensor> inputs = {kGruInput, kGruWeights, kRecurrence, kBias, Tensor(), kStart};
  auto outputs = run_op("GRU", 22, linear(), inputs, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(6.5F, 26.875F));
  EXPECT_THAT(values(outputs[1]), ElementsAre(26.875F));
  Attributes first = linear();
  first.set("linear_before_reset", int64_t{1});
  outputs = run_op("GRU", 22, first, inputs, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(8.5F, 57.875F));
  EXPECT_THAT(values(run_op("GRU", 6, first, inputs, 2)[0]), ElementsAre(8.5F, 57.875F));
}

// The update gate comes first; it keeps the old state.
TEST(Gru, UpdateKeepsTheState) {
  const Tensor weights = floats({1, 3, 1}, {1, 0, 0});
  const Tensor none = floats({1, 3, 1}, {0, 0, 0});
  const Tensor bias = floats({1, 6}, {0, 0, 10, 0, 0, 0});
  const Tensor input = floats({1, 1, 1}, {0.25F});
  const auto outputs = run_op("GRU", 14, linear(), {input, weights, none, bias, Tensor(), kStart});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0.75F * 10 + 0.25F * 2));
}

TEST(Gru, DefaultsAreSigmoidAndTanh) {
  const Attributes attributes = attributes_of({{"hidden_size", 1}});
  const Tensor ones = floats({1, 3, 1}, {1, 1, 1});
  const auto outputs = run_op("GRU", 7, attributes,
                              {floats({1, 1, 1}, {1}), ones, ones, Tensor(), Tensor(), kStart});
  const double gate = 1 / (1 + std::exp(-3.0));
  const double hidden = std::tanh(1 + gate * 2);
  EXPECT_NEAR(values(outputs[0])[0], (1 - gate) * hidden + gate * 2, 1e-6);
}

TEST(Gru, ClipsSumsBeforeFunctions) {
  Attributes attributes = linear();
  attributes.set("clip", 1.5F);
  // Update 0.5, reset 1.5 of 2: hidden = 1.5 of 3 + 1.5 * 2 + 4.
  const auto outputs = run_op("GRU", 14, attributes,
                              {kGruInput, kGruWeights, kRecurrence, kBias, Tensor(), kStart}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(1.75F, 1.625F));
}

TEST(Gru, SequencesHaveTheirOwnLengthsAndDirections) {
  // Zero recurrent weights: H = 0.5 * X + 0.5 * H.
  const Tensor weights = floats({2, 3, 1}, {0, 0, 1, 0, 0, 1});
  const Tensor none = floats({2, 3, 1}, {0, 0, 0, 0, 0, 0});
  const Tensor bias = floats({2, 6}, {0.5F, 0, 0, 0, 0, 0, 0.5F, 0, 0, 0, 0, 0});
  const Tensor input = floats({2, 2, 1}, {4, 8, 16, 32});
  const Tensor lengths = Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{2, 1});
  auto outputs =
      run_op("GRU", 14, linear("bidirectional"), {input, weights, none, bias, lengths}, 2);
  EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_THAT(values(outputs[0]), ElementsAre(2, 4, 6, 4, 9, 0, 8, 0));
  EXPECT_THAT(values(outputs[1]), ElementsAre(9, 4, 6, 4));

  Attributes batched = linear("bidirectional");
  batched.set("layout", int64_t{1});
  outputs = run_op("GRU", 14, batched,
                   {floats({2, 2, 1}, {4, 16, 8, 32}), weights, none, bias, lengths}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(2, 6, 9, 8, 4, 4, 0, 0));
  EXPECT_THAT(values(outputs[1]), ElementsAre(9, 6, 4, 4));
}

TEST(Gru, RefusesLengthsThatCannotBe) {
  for (const int32_t length : {-1, 3}) {
    const Tensor lengths =
        Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{length});
    EXPECT_THROW(
        run_op("GRU", 14, linear(), {kGruInput, kGruWeights, kRecurrence, kBias, lengths}, 2),
        Error)
        << length;
  }
}

// For 2 steps and 3 sequences in both directions: 12 lines of 4 + 5 multiply-adds.
TEST(Gru, WorkIsThatOfItsProducts) {
  const Node node = make_node(all_ops(), "GRU", 14, linear("bidirectional"), {true, true, true}, 1);
  const std::vector<Type> inputs = {Type::tensor(DataType::Float32, Shape{2, 3, 5}),
                                    Type::tensor(DataType::Float32, Shape{2, 12, 5}),
                                    Type::tensor(DataType::Float32, Shape{2, 12, 4})};
  EXPECT_EQ(all_ops().of(node).flops(node, inputs, {}), 2 * 3 * 2 * 12 * (4 + 5) * 2);
}

TEST(Gru, TypesAndWrongModels) {
  const Dim time = Dim::symbol("time");
  const Dim batch = Dim::symbol("batch");
  const auto inputs = [](const Shape& x, const Shape& w, const Shape& r, const Shape& b) {
    return std::vector<InferInput>{typed(DataType::Float32, x), typed(DataType::Float32, w),
                                   typed(DataType::Float32, r), typed(DataType::Float32, b)};
  };
  const Shape x = {time, batch, 5};
  const auto right = infer_op("GRU", 14, {}, inputs(x, {1, 12, 5}, {1, 12, 4}, {1, 24}), 2);
  EXPECT_EQ(*right[0].type.shape, (Shape{time, 1, batch, 4}));
  EXPECT_EQ(*right[1].type.shape, (Shape{1, batch, 4}));
  const struct {
    const char* what;
    std::vector<InferInput> inputs;
  } kWrong[] = {
      {"four gates", inputs(x, {1, 16, 5}, {1, 12, 4}, {1, 24})},
      {"features", inputs(x, {1, 12, 6}, {1, 12, 4}, {1, 24})},
      {"directions", inputs(x, {2, 12, 5}, {2, 12, 4}, {2, 24})},
      {"half a bias", inputs(x, {1, 12, 5}, {1, 12, 4}, {1, 12})},
      {"rank", inputs({time, 5}, {1, 12, 5}, {1, 12, 4}, {1, 24})},
  };
  for (const auto& wrong : kWrong) {
    EXPECT_THROW(infer_op("GRU", 14, {}, wrong.inputs, 2), Error) << wrong.what;
  }
  EXPECT_THROW(infer_op("GRU", 14,
                        attributes_of(
                            {{"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}}}),
                        inputs(x, {1, 12, 5}, {1, 12, 4}, {1, 24}), 2),
               Error);
  EXPECT_THROW(infer_op("GRU", 14, attributes_of({{"direction", "sideways"}}),
                        inputs(x, {1, 12, 5}, {1, 12, 4}, {1, 24}), 2),
               Error);
}

}  // namespace
}  // namespace tessera::ops
