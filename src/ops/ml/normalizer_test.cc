#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

Tensor normalized_rows(const char* norm, const Tensor& rows) {
  return run_ml("Normalizer", 1, attributes_of({{"norm", norm}}), {rows})[0];
}

TEST(Normalizer, DividesEachRow) {
  const Tensor rows = floats({2, 2}, {3, -4, 0, 0});
  EXPECT_THAT(values(normalized_rows("MAX", rows)), ElementsAre(1, FloatEq(-4.0F / 3), 0, 0));
  EXPECT_THAT(values(normalized_rows("L1", rows)),
              ElementsAre(FloatEq(3.0F / 7), FloatEq(-4.0F / 7), 0, 0));
  EXPECT_THAT(values(normalized_rows("L2", rows)),
              ElementsAre(FloatEq(0.6F), FloatEq(-0.8F), 0, 0));
}

// The largest element, not the largest magnitude: the standard says max(X).
TEST(Normalizer, DividesByANegativeMaximum) {
  EXPECT_THAT(values(normalized_rows("MAX", floats({1, 2}, {-2, -4}))), ElementsAre(1, 2));
}

TEST(Normalizer, TakesListsAndIntegers) {
  const Tensor row = normalized_rows("L1", ints({1, 3}));
  EXPECT_THAT(row.dims(), ElementsAre(2));
  EXPECT_THAT(values(row), ElementsAre(0.25F, 0.75F));
}

TEST(Normalizer, RefusesOtherNormsAndRanks) {
  EXPECT_THAT(ml_error("Normalizer", 1, attributes_of({{"norm", "L3"}}), rows_of(2)),
              HasSubstr("expected MAX, L1 or L2, found 'L3'"));
  EXPECT_THAT(ml_error("Normalizer", 1, {}, {typed(DataType::Float32, Shape{1, 2, 3})}),
              HasSubstr("of rank 2, or one row"));
}

}  // namespace
}  // namespace tessera::ops
