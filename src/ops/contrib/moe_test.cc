#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

// Expert 0 doubles, expert 1 triples; the second layer adds 1 in expert 1.
const Tensor kFirstWeights = floats({2, 1, 1}, {2, 3});
const Tensor kSecondWeights = floats({2, 1, 1}, {1, 1});
const Tensor kSecondBias = floats({2, 1}, {0, 1});

// The logits give expert 1 a probability of 3/4 for each token.
Tensor logits(int64_t tokens) {
  std::vector<float> elements;
  for (int64_t token = 0; token < tokens; ++token) {
    elements.push_back(0);
    elements.push_back(std::log(3.0F));
  }
  return floats({tokens, 2}, elements);
}

TEST(MoE, AddsTheResultsOfTheBestExperts) {
  const auto run = [](const Attributes& given) {
    return values(run_contrib("MoE", given,
                              {floats({2, 1}, {10, -10}), logits(2), kFirstWeights, kNothing,
                               kSecondWeights, kSecondBias})[0]);
  };
  const auto near = [](std::vector<float> expected) {
    return Pointwise(FloatNear(1e-5F), std::move(expected));
  };
  EXPECT_THAT(run({}), near({0.75F * 31, 0.75F}));
  EXPECT_THAT(run(attributes_of({{"normalize_routing_weights", 1}})), near({31, 1}));
  EXPECT_THAT(run(attributes_of({{"k", 2}})), near({0.75F * 31 + 0.25F * 20, 0.75F}));
  EXPECT_THAT(run(attributes_of({{"activation_type", "identity"}})),
              near({0.75F * 31, 0.75F * -29}));
}

TEST(MoE, GatesInThreeWays) {
  const auto swiglu = [](int64_t fusion) {
    return attributes_of({{"activation_type", "swiglu"},
                          {"swiglu_fusion", fusion},
                          {"activation_beta", 1.0F},
                          {"normalize_routing_weights", 1}});
  };
  const float expected = 2 / (1 + std::exp(-2.0F)) * (3 + 1);  // G = 2, L = 3
  const Tensor token = floats({1, 1}, {1});
  const Tensor one = floats({1, 1, 1}, {1});
  const Tensor route = floats({1, 1}, {0});
  for (const int64_t fusion : {1, 2}) {
    const auto fused = run_contrib("MoE", swiglu(fusion),
                                   {token, route, floats({1, 2, 1}, {2, 3}), kNothing, one});
    EXPECT_NEAR(values(fused[0])[0], expected, 1e-5F);
  }
  const auto separate = run_contrib(
      "MoE", swiglu(0),
      {token, route, floats({1, 1, 1}, {2}), kNothing, one, kNothing, floats({1, 1, 1}, {3})});
  EXPECT_NEAR(values(separate[0])[0], expected, 1e-5F);
}

TEST(MoE, RefusesWhatDoesNotFit) {
  const Tensor token = floats({1, 1}, {1});
  const auto refusal_of = [&](const Attributes& given, const Tensor& router) {
    return contrib_refusal("MoE", given, {token, router, kFirstWeights, kNothing, kSecondWeights});
  };
  EXPECT_THAT(refusal_of(attributes_of({{"k", 3}}), logits(1)), HasSubstr("'k' in [1, 2]"));
  EXPECT_THAT(refusal_of({}, logits(2)), HasSubstr("expected shape [1x2]"));
  EXPECT_THAT(refusal_of(attributes_of({{"activation_type", "tanh"}}), logits(1)),
              HasSubstr("found 'tanh'"));
  EXPECT_THAT(refusal_of(attributes_of({{"activation_type", "swiglu"}}), logits(1)),
              HasSubstr("expected 'fc3_experts_weights'"));
  EXPECT_THAT(refusal_of(attributes_of({{"use_sparse_mixer", 1}}), logits(1)),
              HasSubstr("use_sparse_mixer"));
}

}  // namespace
}  // namespace tessera::ops
