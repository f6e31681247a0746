#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

TEST(Binarizer, ComparesWithTheThreshold) {
  const Attributes attributes = attributes_of({{"threshold", 0.5F}});
  EXPECT_THAT(
      values(run_ml("Binarizer", 1, attributes, {floats({0.5F, 0.6F, -1, kNan, kInfinity})})[0]),
      ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(integers(run_ml("Binarizer", 1, attributes, {ints({0, 1, -3})})[0]),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(run_ml("Binarizer", 1, {}, {doubles({2}, {1e-300, 0})})[0].as<double>(),
              ElementsAre(1, 0));
}

}  // namespace
}  // namespace tessera::ops
