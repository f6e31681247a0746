#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

Tensor words(std::vector<int64_t> dims, const std::vector<int32_t>& characters) {
  return Tensor::from<int32_t>(DataType::Int32, std::move(dims), characters);
}

// Characters are their numbers over 10, and the filter adds two neighbours.
const Tensor kFilters = floats({1, 1, 2, 1}, {1, 1});
const Tensor kCharacters = floats({4, 1}, {0, 0.1F, 0.2F, 0.3F});

TEST(WordConvEmbedding, TakesTheMaximumOverPlaces) {
  const auto run = [](const std::vector<int32_t>& word) {
    return values(run_contrib("WordConvEmbedding", {},
                              {words({1, 3}, word), kFilters, floats({0.5F}), kCharacters})[0])[0];
  };
  EXPECT_FLOAT_EQ(run({1, 3, 2}), std::tanh(1.0F));
  EXPECT_FLOAT_EQ(run({1, 2, 0}), std::tanh(0.8F));
  // Shorter than the window.
  EXPECT_FLOAT_EQ(run({3, 0, 0}), std::tanh(0.8F));
  EXPECT_EQ(run({0, 3, 3}), 0);
}

TEST(WordConvEmbedding, RefusesWrongSizesAndCharacters) {
  const auto refusal_of = [](const Attributes& given, const Tensor& word) {
    return contrib_refusal("WordConvEmbedding", given,
                           {word, kFilters, floats({0.5F}), kCharacters});
  };
  EXPECT_THAT(refusal_of({}, words({1, 2}, {1, 4})), HasSubstr("characters in [0, 4), found 4"));
  EXPECT_THAT(refusal_of({}, words({1, 1}, {1})), HasSubstr("windows of 1 to 1 characters"));
  EXPECT_THAT(refusal_of(attributes_of({{"embedding_size", 7}}), words({1, 2}, {1, 1})),
              HasSubstr("found 7"));
}

}  // namespace
}  // namespace tessera::ops
