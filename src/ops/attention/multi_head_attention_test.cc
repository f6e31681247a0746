#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Attributes one_head_of(std::initializer_list<NamedAttribute> list = {}) {
  Attributes attributes = attributes_of(list);
  attributes.set("num_heads", int64_t{1});
  return attributes;
}

std::vector<float> multi_head(Attributes attributes, const std::vector<Tensor>& inputs,
                              size_t output = 0) {
  return values(run_microsoft("MultiHeadAttention", std::move(attributes), inputs, 4)[output]);
}

// Queries of zeros; the values make the weights visible.
std::vector<Tensor> with_padding(const Tensor& mask) {
  return {zeros({1, 2, 2}), zeros({1, 2, 2}), floats({1, 2, 2}, {1, 0, 0, 1}), Tensor(), mask};
}

TEST(MultiHeadAttention, MasksOfEachShapeAddTheFilter) {
  const Attributes given = one_head_of({{"mask_filter_value", -2.0F}});
  const float more = weight_of(2);
  const float less = weight_of_zero(2);
  const std::vector<float> second_is_masked = {more, less, more, less};
  EXPECT_THAT(multi_head(given, with_padding(int32s({1}, {1}))), is_about(second_is_masked));
  EXPECT_THAT(multi_head(given, with_padding(int32s({5}, {1, 0, 2, 0, 2}))),
              is_about(second_is_masked));
  EXPECT_THAT(multi_head(given, with_padding(int32s({1, 2}, {1, 0}))), is_about(second_is_masked));
  EXPECT_THAT(multi_head(given, with_padding(int32s({1, 2, 2}, {1, 0, 0, 1}))),
              is_about({more, less, less, more}));
  EXPECT_THAT(multi_head(given, with_padding(int32s({1}, {-3})), 3), is_about({-2, -2, -2, -2}));
  EXPECT_THAT(
      microsoft_refusal("MultiHeadAttention", given, with_padding(int32s({4}, {1, 1, 1, 1}))),
      HasSubstr("found [4]"));
}

TEST(MultiHeadAttention, UnidirectionalQueriesSeeNoLaterKeys) {
  const Attributes given = one_head_of({{"unidirectional", int64_t{1}}});
  EXPECT_THAT(multi_head(given, with_padding({})), is_about({1, 0, kHalf, kHalf}));
  // Masked keys are preferred to later ones.
  EXPECT_THAT(multi_head(given, with_padding(int32s({1, 2}, {0, 1}))), is_about({1, 0, 0, 1}));
}

TEST(MultiHeadAttention, BiasesOfProjectionsAndOfScores) {
  // The query is 1 + 1, the keys are 0 + 1 and 2 + 1, the values 5 + 10 and 6 + 10.
  const std::vector<Tensor> inputs = {floats({1, 1, 1}, {1}),
                                      floats({1, 2, 1}, {0, 2}),
                                      floats({1, 2, 1}, {5, 6}),
                                      floats({3}, {1, 1, 10}),
                                      Tensor(),
                                      floats({1, 1, 1, 2}, {3, 0})};
  const auto outputs = run_microsoft("MultiHeadAttention", one_head_of(), inputs, 4);
  EXPECT_THAT(values(outputs[0]), is_about({15 + weight_of(1)}));
  EXPECT_THAT(values(outputs[1]), ElementsAre(1, 3));
  EXPECT_THAT(values(outputs[2]), ElementsAre(15, 16));
  EXPECT_THAT(values(outputs[3]), ElementsAre(5, 6));
}

TEST(MultiHeadAttention, PackedVectors) {
  // One position of 2 heads of one number: query, key and value side by side.
  const auto heads = attributes_of({{"num_heads", int64_t{2}}});
  const auto all =
      run_microsoft("MultiHeadAttention", heads, {floats({1, 1, 2, 3, 1}, {1, 2, 3, 4, 5, 6})}, 4);
  EXPECT_THAT(values(all[0]), ElementsAre(3, 6));
  EXPECT_THAT(values(all[1]), ElementsAre(2, 5));
  EXPECT_THAT(values(all[3]), ElementsAre(2, 20));
  const auto keys =
      run_microsoft("MultiHeadAttention", heads,
                    {floats({1, 1, 2}, {1, 4}), floats({1, 1, 2, 2, 1}, {2, 3, 5, 6})}, 4);
  EXPECT_THAT(values(keys[0]), ElementsAre(3, 6));
  EXPECT_THAT(values(keys[3]), ElementsAre(2, 20));
}

TEST(MultiHeadAttention, CachesGrowOrHaveSpace) {
  const std::vector<Tensor> inputs = {zeros({1, 1, 1}),
                                      floats({1, 1, 1}, {2}),
                                      floats({1, 1, 1}, {20}),
                                      Tensor(),
                                      Tensor(),
                                      Tensor(),
                                      floats({1, 1, 3, 1}, {1, 8, 9}),
                                      floats({1, 1, 3, 1}, {10, 80, 90})};
  const auto grown = run_microsoft("MultiHeadAttention", one_head_of(), inputs, 3);
  EXPECT_THAT(values(grown[0]), is_about({50}));
  EXPECT_THAT(values(grown[1]), ElementsAre(1, 8, 9, 2));
  std::vector<Tensor> shared = inputs;
  shared.push_back(int32s({1}, {1}));
  const auto filled = run_microsoft("MultiHeadAttention", one_head_of(), shared, 3);
  EXPECT_THAT(values(filled[0]), is_about({15}));
  EXPECT_THAT(values(filled[1]), ElementsAre(1, 2, 9));
  shared.back() = int32s({1}, {3});
  EXPECT_THAT(microsoft_refusal("MultiHeadAttention", one_head_of(), shared, 3),
              HasSubstr("expected space for 4 positions, found 3"));
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const auto refused = [&](const std::vector<Tensor>& inputs) {
    return microsoft_refusal("MultiHeadAttention", one_head_of(), inputs);
  };
  EXPECT_THAT(refused({zeros({1, 2, 2}), zeros({1, 2, 2})}), HasSubstr("input 'value' beside it"));
  EXPECT_THAT(refused({zeros({1, 2, 2}), zeros({1, 2, 3}), zeros({1, 2, 3})}),
              HasSubstr("[1x2x2]"));
  EXPECT_THAT(refused({zeros({1, 2, 2}), zeros({1, 2, 2}), zeros({1, 3, 2})}),
              HasSubstr("[1x2x2]"));
  EXPECT_THAT(refused({zeros({1, 2, 2}), zeros({1, 2, 2}), zeros({1, 2, 2}), zeros({5})}),
              HasSubstr("[6]"));
}

TEST(DecoderMaskedMultiHeadAttention, TakesOnePositionAndASharedBuffer) {
  const auto outputs = run_microsoft(
      "DecoderMaskedMultiHeadAttention", one_head_of({{"past_present_share_buffer", int64_t{1}}}),
      {floats({1, 1, 3}, {0, 2, 20}), Tensor(), Tensor(), int32s({1, 2}, {1, 1}), Tensor(),
       floats({1, 1, 2, 1}, {1, 9}), floats({1, 1, 2, 1}, {10, 90}), int32s({1}, {1})},
      3);
  EXPECT_THAT(values(outputs[0]), is_about({15}));
  EXPECT_THAT(values(outputs[2]), ElementsAre(10, 20));
  EXPECT_THAT(microsoft_refusal("DecoderMaskedMultiHeadAttention", one_head_of(),
                                {zeros({1, 2, 1}), zeros({1, 2, 1}), zeros({1, 2, 1})}),
              HasSubstr("expected one position, found 2"));
}

}  // namespace
}  // namespace tessera::ops
