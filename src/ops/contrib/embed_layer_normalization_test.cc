#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

Tensor ids(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  return Tensor::from<int32_t>(DataType::Int32, std::move(dims), values);
}

const Tensor kTable = floats({3, 2}, {0, 2, 1, 5, 2, 4});
const Tensor kEmbeddingOnes = floats({2}, {1, 1});
const Tensor kZeros = floats({2}, {0, 0});

TEST(EmbedLayerNormalization, AddsEmbeddingsAndNormalises) {
  const auto outputs = run_contrib("EmbedLayerNormalization", {},
                                   {ids({1, 2}, {1, 2}), ids({1, 2}, {0, 1}), kTable, kTable,
                                    kTable, kEmbeddingOnes, kZeros, ids({1, 2}, {1, 0})},
                                   {true, true, true});
  // Words plus positions 0 and 1 plus segments.
  EXPECT_THAT(values(outputs[2]), ElementsAre(1, 9, 4, 14));
  EXPECT_THAT(values(outputs[0]), Pointwise(FloatNear(1e-6F), std::vector<float>{-1, 1, -1, 1}));
  EXPECT_THAT(outputs[1].as<int32_t>(), ElementsAre(1));
}

TEST(EmbedLayerNormalization, TakesGivenPositionsAndNoSegments) {
  const auto outputs = run_contrib("EmbedLayerNormalization", {},
                                   {ids({2, 1}, {0, 1}), kNothing, kTable, kTable, kNothing,
                                    kEmbeddingOnes, kZeros, kNothing, ids({1, 1}, {2})},
                                   {true, true, true});
  EXPECT_THAT(values(outputs[2]), ElementsAre(2, 6, 3, 9));
  EXPECT_THAT(outputs[1].as<int32_t>(), ElementsAre(0, 0));
}

TEST(EmbedLayerNormalization, RefusesWrongIdsAndShapes) {
  const auto refusal_of = [](const Tensor& words, const Tensor& segments, const Tensor& scale) {
    return contrib_refusal("EmbedLayerNormalization", {},
                           {words, segments, kTable, kTable, kNothing, scale, kZeros});
  };
  const Tensor one = ids({1, 1}, {0});
  EXPECT_THAT(refusal_of(ids({1, 1}, {3}), kNothing, kEmbeddingOnes), HasSubstr("ids in [0, 3)"));
  EXPECT_THAT(refusal_of(ids({1, 1}, {-1}), kNothing, kEmbeddingOnes), HasSubstr("ids in [0, 3)"));
  EXPECT_THAT(refusal_of(ids({1, 4}, {0, 0, 0, 0}), kNothing, kEmbeddingOnes),
              HasSubstr("found 3"));
  EXPECT_THAT(refusal_of(one, one, kEmbeddingOnes), HasSubstr("both 'segment_ids'"));
  EXPECT_THAT(refusal_of(one, kNothing, floats({3}, {1, 1, 1})), HasSubstr("expected shape [2]"));
  EXPECT_THAT(refusal_of(ids({1}, {0}), kNothing, kEmbeddingOnes), HasSubstr("expected rank 2"));
}

}  // namespace
}  // namespace tessera::ops
