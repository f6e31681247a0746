#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kExtractor = "ArrayFeatureExtractor";

TEST(ArrayFeatureExtractor, PicksAlongTheLastAxis) {
  const Tensor picked =
      run_ml(kExtractor, 1, {}, {floats({2, 3}, {0, 1, 2, 3, 4, 5}), ints({2, 0})})[0];
  EXPECT_THAT(picked.dims(), ElementsAre(2, 2));
  EXPECT_THAT(values(picked), ElementsAre(2, 0, 5, 3));
}

TEST(ArrayFeatureExtractor, MakesARowOfAList) {
  const Tensor picked = run_ml(kExtractor, 1, {}, {ints({7, 8, 9}), ints({1, 2}, {2, 2})})[0];
  EXPECT_THAT(picked.dims(), ElementsAre(1, 2));
  EXPECT_THAT(integers(picked), ElementsAre(9, 9));
}

TEST(ArrayFeatureExtractor, PicksStrings) {
  const Tensor picked =
      run_text({kExtractor, 1, kMlDomain}, {}, {strings({1, 2}, {"a", "b"}), ints({1})})[0];
  EXPECT_THAT(texts(picked), ElementsAre("b"));
}

TEST(ArrayFeatureExtractor, AcceptsEmptyRows) {
  EXPECT_THAT(run_ml(kExtractor, 1, {}, {floats({0, 3}, {}), ints({1})})[0].dims(),
              ElementsAre(0, 1));
  EXPECT_THAT(
      run_ml(kExtractor, 1, {}, {floats({2, 3}, {0, 1, 2, 3, 4, 5}), ints({0}, {})})[0].dims(),
      ElementsAre(2, 0));
}

TEST(ArrayFeatureExtractor, RefusesWhatIsOutOfRange) {
  for (const int64_t index : {-1, 3}) {
    EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                         [&] { run_ml(kExtractor, 1, {}, {floats({0, 1, 2}), ints({index})}); }),
                HasSubstr("[0, 3), found " + std::to_string(index)));
  }
  EXPECT_THAT(ml_error(kExtractor, 1, {},
                       {typed(DataType::Float32, Shape{}), typed(DataType::Int64, Shape{1})}),
              HasSubstr("found a scalar"));
}

}  // namespace
}  // namespace tessera::ops
