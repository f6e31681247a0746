#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Attributes one_group(std::initializer_list<NamedAttribute> list = {}) {
  Attributes attributes = attributes_of(list);
  attributes.set("num_heads", int64_t{1});
  attributes.set("kv_num_heads", int64_t{1});
  return attributes;
}

// Three positions whose queries are 0; values are 1, 2 and 6. `more` begins with cos_cache.
std::vector<Tensor> prompt(std::vector<Tensor> more = {}, int32_t length = 3) {
  std::vector<Tensor> inputs = {zeros({1, 3, 1}), zeros({1, 3, 1}), floats({1, 3, 1}, {1, 2, 6}),
                                Tensor(),         Tensor(),         int32s({1}, {length - 1}),
                                int32s({}, {3})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

std::vector<float> group_query(Attributes attributes, const std::vector<Tensor>& inputs,
                               size_t output = 0) {
  return values(run_microsoft("GroupQueryAttention", std::move(attributes), inputs, 4)[output]);
}

TEST(GroupQueryAttention, IsCausalUnlessSaidOtherwise) {
  EXPECT_THAT(group_query(one_group(), prompt()), is_about({1, 1.5F, 3}));
  EXPECT_THAT(group_query(one_group({{"causal", int64_t{0}}}), prompt()), is_about({3, 3, 3}));
  // A shorter sequence has two keys.
  EXPECT_THAT(group_query(one_group(), prompt({}, 2)), is_about({1, 1.5F, 1.5F}));
}

TEST(GroupQueryAttention, AWindowContainsTheQuerysOwnKey) {
  const auto window = [](int64_t size) { return one_group({{"local_window_size", size}}); };
  EXPECT_THAT(group_query(window(1), prompt()), is_about({1, 2, 6}));
  EXPECT_THAT(group_query(window(2), prompt()), is_about({1, 1.5F, 4}));
  EXPECT_THAT(group_query(window(0), prompt()), is_about({0, 0, 0}));
}

TEST(GroupQueryAttention, ASinkTakesAPartOfTheWeights) {
  EXPECT_THAT(group_query(one_group({{"smooth_softmax", int64_t{1}}}), prompt()),
              is_about({kHalf, 1, 2.25F}));
  const Tensor none;
  const Tensor sink = floats({1}, {static_cast<float>(std::log(3.0))});
  EXPECT_THAT(group_query(one_group(), prompt({none, none, none, none, sink})),
              is_about({0.25F, 0.6F, 1.5F}));
}

TEST(GroupQueryAttention, GivesScoresBeforeOrAfterTheSoftmax) {
  const Tensor none;
  const Tensor bias = floats({1, 1, 3, 3}, {1, 2, 3, 4, 4, 6, 7, 7, 7});
  const std::vector<Tensor> inputs = prompt({none, none, none, bias});
  EXPECT_THAT(group_query(one_group({{"qk_output", int64_t{1}}}), inputs, 3),
              is_about({1, 0, 0, 4, 4, 0, 7, 7, 7}));
  EXPECT_THAT(group_query(one_group({{"qk_output", int64_t{2}}}), inputs, 3),
              is_about({1, 0, 0, kHalf, kHalf, 0, kThird, kThird, kThird}));
}

TEST(GroupQueryAttention, CachesGrowOrHaveSpace) {
  const auto step = [](int32_t total) {
    return std::vector<Tensor>{zeros({1, 1, 1}),
                               floats({1, 1, 1}, {5}),
                               floats({1, 1, 1}, {50}),
                               floats({1, 1, 2, 1}, {1, 2}),
                               floats({1, 1, 2, 1}, {10, 20}),
                               int32s({1}, {total - 1}),
                               int32s({1}, {total})};
  };
  const auto grown = run_microsoft("GroupQueryAttention", one_group(), step(3), 3);
  EXPECT_THAT(values(grown[0]), is_about({80.0F / 3}));
  EXPECT_THAT(values(grown[1]), ElementsAre(1, 2, 5));
  const auto filled = run_microsoft("GroupQueryAttention", one_group(), step(2), 3);
  EXPECT_THAT(values(filled[0]), is_about({30}));
  EXPECT_THAT(values(filled[1]), ElementsAre(1, 5));
  EXPECT_THAT(values(run_microsoft("GroupQueryAttention", one_group(), step(2))[0]),
              is_about({30}));
  EXPECT_THAT(microsoft_refusal("GroupQueryAttention", one_group(), step(4)),
              HasSubstr("expected 3 or at most 2, the positions of the cache, found 4"));
}

TEST(GroupQueryAttention, WhatIsBehindTheLastPositionStays) {
  const float nothing = std::nanf("");
  const auto found = run_microsoft(
      "GroupQueryAttention", one_group(),
      {zeros({1, 1, 1}), floats({1, 1, 1}, {5}), floats({1, 1, 1}, {50}),
       floats({1, 1, 4, 1}, {1, 2, 3, 4}), floats({1, 1, 4, 1}, {10, nothing, nothing, 40}),
       int32s({1}, {1}), int32s({1}, {4})},
      3);
  EXPECT_THAT(values(found[0]), is_about({30}));
  EXPECT_THAT(values(found[1]), ElementsAre(1, 5, 3, 4));
  EXPECT_EQ(values(found[2])[3], 40);
}

TEST(GroupQueryAttention, PackedVectorsAreNormalisedAndRotated) {
  // One position: the query is (3, 4), the key (0, 2), the value (7, 8).
  std::vector<Tensor> inputs = {floats({1, 1, 6}, {3, 4, 0, 2, 7, 8}),
                                Tensor(),
                                Tensor(),
                                Tensor(),
                                Tensor(),
                                int32s({1}, {0}),
                                int32s({1}, {1}),
                                floats({2, 1}, {1, 0}),
                                floats({2, 1}, {0, 1}),
                                ints({1, 1}, {1})};
  const Attributes given =
      one_group({{"do_rotary", int64_t{1}}, {"qk_output", int64_t{1}}, {"scale", 1.0F}});
  const auto rotated = run_microsoft("GroupQueryAttention", given, inputs, 4);
  EXPECT_THAT(values(rotated[0]), ElementsAre(7, 8));
  EXPECT_THAT(values(rotated[1]), ElementsAre(-2, 0));
  EXPECT_THAT(values(rotated[3]), ElementsAre(8));
  inputs.resize(14);
  inputs.push_back(floats({2}, {1, 1}));
  inputs.push_back(floats({2}, {1, 3}));
  const auto normalised = run_microsoft("GroupQueryAttention", given, inputs, 4);
  // The root mean square of the key is sqrt(2), that of the query sqrt(12.5).
  EXPECT_THAT(values(normalised[1]), is_about({-3 * std::sqrt(2.0F), 0}));
  EXPECT_NEAR(values(normalised[3])[0], 4 / std::sqrt(12.5) * 3 * std::sqrt(2.0), 1e-4);
}

TEST(GroupQueryAttention, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const std::vector<Tensor>& inputs) {
    return microsoft_refusal("GroupQueryAttention", std::move(given), inputs);
  };
  EXPECT_THAT(refused(one_group(), prompt({}, 4)),
              HasSubstr("expected numbers in [0, 3), found 3"));
  EXPECT_THAT(refused(one_group(), prompt({}, 0)), HasSubstr("found -1"));
  EXPECT_THAT(refused(one_group({{"do_rotary", int64_t{1}}}), prompt()), HasSubstr("'cos_cache'"));
  EXPECT_THAT(refused(one_group({{"sliding_window_cache", int64_t{1}}}), prompt()),
              HasSubstr("have no kernel"));
  EXPECT_THAT(refused(one_group({{"k_quant_type", std::string("PER_TENSOR")}}), prompt()),
              HasSubstr("quantised caches"));
  EXPECT_THAT(
      refused(one_group({{"local_window_size", int64_t{1}}, {"causal", int64_t{0}}}), prompt()),
      HasSubstr("expected -1 without causal attention"));
}

}  // namespace
}  // namespace tessera::ops
