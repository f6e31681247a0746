#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Attributes sizes(std::vector<int64_t> list) {
  Attributes attributes;
  attributes.set("inputdimensions", std::move(list));
  return attributes;
}

TEST(FeatureVectorizer, JoinsFeatures) {
  const Tensor joined = run_ml("FeatureVectorizer", 1, sizes({1, 2}),
                               {ints({2, 1}, {1, 2}), ints({2, 2}, {3, 4, 5, 6})})[0];
  EXPECT_THAT(joined.dims(), ElementsAre(2, 3));
  EXPECT_THAT(values(joined), ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(FeatureVectorizer, CutsAndFillsUp) {
  EXPECT_THAT(
      values(run_ml("FeatureVectorizer", 1, sizes({1, 3}), {floats({7, 8}), floats({1, 2})})[0]),
      ElementsAre(7, 1, 2, 0));
}

TEST(FeatureVectorizer, RefusesWhatDoesNotFit) {
  const std::vector<InferInput> inputs = {typed(DataType::Float32, Shape{2, 1}),
                                          typed(DataType::Float32, Shape{3, 1})};
  EXPECT_THAT(ml_error("FeatureVectorizer", 1, sizes({1}), inputs),
              HasSubstr("a size for each of 2 inputs, found 1"));
  EXPECT_THAT(ml_error("FeatureVectorizer", 1, sizes({1, 1}), inputs),
              HasSubstr("expected 2 rows, as an input before has, found 3"));
  EXPECT_THAT(ml_error("FeatureVectorizer", 1, sizes({1, kLargest}), inputs),
              HasSubstr("found 9223372036854775807"));
}

}  // namespace
}  // namespace tessera::ops
