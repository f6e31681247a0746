#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

using Numbers = std::vector<float>;

// Three queries of zeros, so that all keys which a query sees have equal weights.
std::vector<Tensor> equal_weights(Tensor mask = {}, Tensor key_lengths = {}) {
  std::vector<Tensor> inputs = {zeros({1, 1, 3, 2}), zeros({1, 1, 3, 2}), unit_values(3),
                                std::move(mask)};
  if (!key_lengths.is_empty()) {
    inputs.insert(inputs.end(), {Tensor(), Tensor(), std::move(key_lengths)});
  }
  return inputs;
}

Numbers weights(int opset, Attributes attributes, const std::vector<Tensor>& inputs) {
  return values(run_op("Attention", opset, std::move(attributes), inputs)[0]);
}

TEST(Attention, WeighsValuesByProductsOfQueriesAndKeys) {
  // The scores are 2 * 0 and 2 * 1.5, times 1 / sqrt(1).
  const std::vector<Tensor> inputs = {floats({1, 1, 1, 1}, {2}), floats({1, 1, 2, 1}, {0, 1.5F}),
                                      floats({1, 1, 2, 1}, {10, 20})};
  EXPECT_THAT(weights(23, {}, inputs), is_about({20 - 10 * weight_of_zero(3)}));
  EXPECT_THAT(weights(23, attributes_of({{"scale", 0.5F}}), inputs),
              is_about({20 - 10 * weight_of_zero(1.5)}));
  // 2 * tanh(3 / 2).
  EXPECT_THAT(weights(25, attributes_of({{"softcap", 2.0F}}), inputs),
              is_about({20 - 10 * weight_of_zero(2 * std::tanh(1.5))}));
}

TEST(Attention, DividesByTheRootOfTheHeadSize) {
  const std::vector<Tensor> inputs = {floats({1, 1, 1, 4}, {1, 1, 1, 1}),
                                      floats({1, 1, 2, 4}, {0, 0, 0, 0, 1, 1, 1, 1}),
                                      floats({1, 1, 2, 1}, {0, 1})};
  EXPECT_THAT(weights(23, {}, inputs), is_about({weight_of(2)}));
}

TEST(Attention, MasksOfEachTypeAreBroadcast) {
  const Numbers two_of_three = {kHalf, kHalf, 0, kHalf, kHalf, 0, kHalf, kHalf, 0};
  EXPECT_THAT(weights(23, {}, equal_weights(bools({3}, {1, 1, 0}))), is_about(two_of_three));
  EXPECT_THAT(weights(23, {}, equal_weights(floats({1, 1, 3}, {0, 0, -kInfinity}))),
              is_about(two_of_three));
  EXPECT_THAT(weights(23, {}, equal_weights(bools({3, 1}, {1, 1, 1}))),
              is_about(Numbers(9, kThird)));
  const Numbers biased = weights(23, {}, equal_weights(ints({3, 3}, {0, 0, 0, 1, 0, 0, 0, 0, 2})));
  EXPECT_NEAR(biased[3] / biased[4], std::exp(1.0F), 1e-5F);
  EXPECT_NEAR(biased[8] / biased[6], std::exp(2.0F), 1e-5F);
}

TEST(Attention, ARowWithoutKeysIsZero) {
  EXPECT_THAT(weights(23, {}, equal_weights(bools({3, 3}, {0, 0, 0, 1, 0, 0, 1, 1, 0}))),
              is_about({0, 0, 0, 1, 0, 0, kHalf, kHalf, 0}));
  const Numbers all(9, -kInfinity);
  const auto outputs =
      run_op("Attention", 23, attributes_of({{"qk_matmul_output_mode", int64_t{3}}}),
             equal_weights(floats({3, 3}, all)), 4);
  EXPECT_THAT(values(outputs[0]), is_about(Numbers(9, 0)));
  EXPECT_THAT(values(outputs[3]), is_about(Numbers(9, 0)));
}

TEST(Attention, ShorterMasksSinceVersion24MaskTheOtherKeys) {
  EXPECT_THAT(weights(24, {}, equal_weights(bools({3, 2}, {1, 1, 1, 0, 1, 1}))),
              is_about({kHalf, kHalf, 0, 1, 0, 0, kHalf, kHalf, 0}));
  // A mask of one key is one that is shorter, too; before, it is for all keys.
  const Tensor one_key = bools({3, 1}, {1, 1, 0});
  EXPECT_THAT(weights(24, {}, equal_weights(one_key)), is_about({1, 0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_THAT(weights(23, {}, equal_weights(one_key)),
              is_about({kThird, kThird, kThird, kThird, kThird, kThird, 0, 0, 0}));
  EXPECT_THAT(
      refusal("Attention", 23, {}, equal_weights(bools({3, 2}, std::vector<uint8_t>(6, 1)))),
      HasSubstr("broadcasts to 1x1x3x3, found 3x2"));
}

TEST(Attention, CausalQueriesSeeNoLaterKeys) {
  const auto causal = attributes_of({{"is_causal", int64_t{1}}});
  EXPECT_THAT(weights(23, causal, equal_weights()),
              is_about({1, 0, 0, kHalf, kHalf, 0, kThird, kThird, kThird}));
  // The mask and the frontier are added up.
  EXPECT_THAT(weights(23, causal, equal_weights(bools({3}, {0, 1, 1}))),
              is_about({0, 0, 0, 0, 1, 0, 0, kHalf, kHalf}));
}

TEST(Attention, LengthsOfKeysMoveTheCausalFrontier) {
  const auto causal = attributes_of({{"is_causal", int64_t{1}}});
  EXPECT_THAT(weights(24, {}, equal_weights({}, ints({1}, {2}))),
              is_about({kHalf, kHalf, 0, kHalf, kHalf, 0, kHalf, kHalf, 0}));
  // The last query is at the last of two keys, so the first one sees none.
  EXPECT_THAT(weights(24, causal, equal_weights({}, ints({1}, {2}))),
              is_about({0, 0, 0, 1, 0, 0, kHalf, kHalf, 0}));
  EXPECT_THAT(refusal("Attention", 24, {}, equal_weights({}, ints({1}, {4}))),
              HasSubstr("expected numbers in [0, 3], found 4"));
}

TEST(Attention, WindowsSinceVersion25) {
  const auto window = [](int64_t left, int64_t right) {
    return attributes_of({{"left_window_size", left}, {"right_window_size", right}});
  };
  EXPECT_THAT(weights(25, window(0, 0), equal_weights()), is_about({1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_THAT(weights(25, window(1, -1), equal_weights()),
              is_about({kThird, kThird, kThird, kThird, kThird, kThird, 0, kHalf, kHalf}));
  EXPECT_THAT(weights(25, window(kLargest, kLargest), equal_weights()),
              is_about(Numbers(9, kThird)));
  EXPECT_THAT(weights(25, window(-1, 0), equal_weights({}, ints({1}, {1}))),
              is_about({0, 0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_THAT(refusal("Attention", 25, window(-2, 0), equal_weights()), HasSubstr("found -2"));
}

TEST(Attention, HeadsOfQueriesShareThoseOfKeys) {
  // Of 4 heads, the first two see the first head of keys.
  const auto outputs = run_op(
      "Attention", 23, attributes_of({{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}),
      {zeros({1, 1, 4}), zeros({1, 2, 2}), floats({1, 2, 4}, {1, 2, 3, 4, 3, 4, 5, 6})});
  EXPECT_EQ(outputs[0].dims(), list({1, 1, 8}));
  EXPECT_THAT(values(outputs[0]), is_about({2, 3, 2, 3, 4, 5, 4, 5}));
}

TEST(Attention, CachesGrow) {
  const auto outputs =
      run_op("Attention", 24, attributes_of({{"is_causal", int64_t{1}}}),
             {zeros({1, 1, 2, 1}), floats({1, 1, 2, 1}, {3, 4}), floats({1, 1, 2, 1}, {30, 40}),
              Tensor(), floats({1, 1, 1, 1}, {5}), floats({1, 1, 1, 1}, {50})},
             3);
  EXPECT_THAT(values(outputs[0]), is_about({40, 40}));
  EXPECT_THAT(values(outputs[1]), ElementsAre(5, 3, 4));
  EXPECT_THAT(values(outputs[2]), ElementsAre(50, 30, 40));
}

TEST(Attention, AnEmptyCacheIsNone) {
  const auto outputs =
      run_op("Attention", 23, {},
             {zeros({1, 1, 1, 1}), floats({1, 1, 1, 1}, {3}), floats({1, 1, 1, 1}, {7}), Tensor(),
              zeros({1, 1, 0, 1}), zeros({1, 1, 0, 1})},
             3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(7));
  EXPECT_THAT(values(outputs[1]), ElementsAre(3));
}

TEST(Attention, GivesScoresOfEachStage) {
  const std::vector<Tensor> inputs = {floats({1, 1, 1, 1}, {2}), floats({1, 1, 2, 1}, {0, 1.5F}),
                                      zeros({1, 1, 2, 1}), floats({2}, {1, 2})};
  const auto scores = [&](int64_t mode) {
    const auto given = attributes_of({{"softcap", 2.0F}, {"qk_matmul_output_mode", mode}});
    return values(run_op("Attention", 23, given, inputs, 4)[3]);
  };
  const auto capped = static_cast<float>(2 * std::tanh(1.5));
  EXPECT_THAT(scores(0), is_about({0, 3}));
  EXPECT_THAT(scores(1), is_about({0, capped}));
  EXPECT_THAT(scores(2), is_about({1, capped + 2}));
  EXPECT_THAT(scores(3), is_about({weight_of_zero(capped + 1), weight_of(capped + 1)}));
  EXPECT_THAT(
      refusal("Attention", 23, attributes_of({{"qk_matmul_output_mode", int64_t{4}}}), inputs),
      HasSubstr("found 4"));
}

TEST(Attention, RoundsToThePrecisionOfTheSoftmax) {
  // As float16, 2049 is 2048.
  const std::vector<Tensor> inputs = {floats({1, 1, 1, 1}, {1}), floats({1, 1, 2, 1}, {2048, 2049}),
                                      floats({1, 1, 2, 1}, {0, 1})};
  EXPECT_THAT(weights(23, {}, inputs), is_about({weight_of(1)}));
  EXPECT_THAT(weights(23, attributes_of({{"softmax_precision", int64_t{10}}}), inputs),
              is_about({kHalf}));
  EXPECT_THAT(weights(23, attributes_of({{"softmax_precision", int64_t{11}}}), inputs),
              is_about({weight_of(1)}));
  EXPECT_THAT(refusal("Attention", 23, attributes_of({{"softmax_precision", int64_t{7}}}), inputs),
              HasSubstr("expected 1, 10, 11 or 16, found 7"));
}

TEST(Attention, EmptyTensors) {
  // Vectors without elements have products of 0; without keys, there is nothing to add up.
  EXPECT_THAT(
      weights(23, {}, {zeros({1, 1, 1, 0}), zeros({1, 1, 2, 0}), floats({1, 1, 2, 1}, {4, 6})}),
      ElementsAre(5));
  EXPECT_THAT(weights(23, {}, {zeros({1, 1, 2, 1}), zeros({1, 1, 0, 1}), zeros({1, 1, 0, 1})}),
              ElementsAre(0, 0));
  constexpr int64_t kMany = int64_t{1} << 20;
  EXPECT_EQ(
      run_op("Attention", 23, {},
             {zeros({0, kMany, kMany, 1}), zeros({0, kMany, 1, 1}), zeros({0, kMany, 1, 1})})[0]
          .elements(),
      0);
}

TEST(Attention, TheRuleKnowsSizesByTheirSymbols) {
  const Dim batch = Dim::symbol("batch");
  const Dim past = Dim::symbol("past");
  const InferInput cache = typed(DataType::Float16, Shape{batch, 2, past, 8});
  const InferInput heads = typed(DataType::Float16, Shape{batch, 2, 1, 8});
  const auto outputs = infer_op(
      "Attention", 23, {},
      {typed(DataType::Float16, Shape{batch, 6, 1, 8}), heads, heads, {}, cache, cache}, 4);
  EXPECT_EQ(shape_text(outputs), "float16 batchx6x1x8");
  EXPECT_EQ(outputs[1].type.shape, (Shape{batch, 2, add(past, 1), 8}));
  EXPECT_EQ(outputs[3].type.shape, (Shape{batch, 6, 1, add(past, 1)}));
  const InferInput any = typed(DataType::Float32, std::nullopt);
  const auto unknown = infer_op("Attention", 23, {}, {any, any, any});
  EXPECT_FALSE(unknown[0].type.shape);
}

struct WrongModel {
  Attributes attributes;
  std::vector<std::vector<int64_t>> shapes;  // of Q, K, V, attn_mask, past_key, past_value
  std::string message;
};

TEST(Attention, RefusesOperandsThatDoNotFit) {
  const auto heads = [](int64_t queries, int64_t keys) {
    return attributes_of({{"q_num_heads", queries}, {"kv_num_heads", keys}});
  };
  const std::vector<int64_t> none;
  const WrongModel models[] = {
      {{}, {{1, 2}, {1, 2}, {1, 2}}, "expected 3 or 4 dimensions"},
      {{}, {{1, 1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "expected 4 dimensions as input 'Q' has"},
      {{}, {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "inputs of 3 dimensions need, found neither"},
      {heads(2, 1), {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "a multiple of 2 heads, found 3"},
      {heads(0, 1), {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "expected at least 1 head, found 0"},
      {heads(2, 1), {{1, 1, 2, 3}, {1, 1, 2, 3}, {1, 1, 2, 3}}, "expected 1, the second of 4"},
      {{}, {{1, 3, 2, 4}, {1, 2, 2, 4}, {1, 2, 2, 4}}, "a multiple of that of keys (2), found 3"},
      {{}, {{1, 1, 2, 4}, {1, 1, 2, 5}, {1, 1, 2, 5}}, "expected shape [1x1x2x4]"},
      {{}, {{1, 1, 2, 4}, {1, 1, 2, 4}, {1, 1, 3, 4}}, "expected shape [1x1x2x4]"},
      {{}, {{1, 1, 2, 4}, {1, 1, 2, 4}, {1, 1, 2, 4}, {3, 2}}, "broadcasts to 1x1x2x2"},
      {{}, {{1, 1, 2, 4}, {1, 1, 2, 4}, {1, 1, 2, 4}, none, {1, 1, 3, 4}}, "or neither"},
      {{},
       {{1, 1, 2, 4}, {1, 1, 2, 4}, {1, 1, 2, 4}, none, {1, 1, 3, 4}, {1, 1, 2, 4}},
       "expected shape [1x1x3x4]"},
  };
  for (const WrongModel& model : models) {
    std::vector<Tensor> inputs;
    for (const auto& shape : model.shapes) {
      inputs.push_back(shape.empty() ? Tensor() : zeros(shape));
    }
    EXPECT_THAT(refusal("Attention", 23, model.attributes, inputs), HasSubstr(model.message));
  }
}

}  // namespace
}  // namespace tessera::ops
