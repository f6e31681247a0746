#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Attributes imputed(std::vector<float> by, float replaced) {
  Attributes attributes = attributes_of({{"replaced_value_float", replaced}});
  attributes.set("imputed_value_floats", std::move(by));
  return attributes;
}

TEST(Imputer, ReplacesNanByFeature) {
  EXPECT_THAT(
      values(run_ml("Imputer", 1, imputed({1, 2}, kNan), {floats({2, 2}, {kNan, 3, 4, kNan})})[0]),
      ElementsAre(1, 3, 4, 2));
}

TEST(Imputer, ReplacesANumberByOneValue) {
  EXPECT_THAT(
      run_ml("Imputer", 1, imputed({9}, -1), {doubles({1, 3}, {-1, 0, -1})})[0].as<double>(),
      ElementsAre(9, 0, 9));
}

TEST(Imputer, ReplacesIntegers) {
  Attributes attributes = attributes_of({{"replaced_value_int64", 7}});
  attributes.set("imputed_value_int64s", std::vector<int64_t>{kLargest, 0});
  EXPECT_THAT(integers(run_ml("Imputer", 1, attributes, {ints({2, 2}, {7, 7, 1, 2})})[0]),
              ElementsAre(kLargest, 0, 1, 2));
  EXPECT_THAT(ml_error("Imputer", 1, attributes, rows_of(2, DataType::Int32)),
              HasSubstr("values of int32, found 9223372036854775807"));
}

TEST(Imputer, RefusesOtherNumbersOfValues) {
  EXPECT_THAT(ml_error("Imputer", 1, imputed({1, 2}, 0), rows_of(3)),
              HasSubstr("1 value or 3, one for each feature, found 2"));
  EXPECT_THAT(ml_error("Imputer", 1, imputed({1}, 0), rows_of(3, DataType::Int64)),
              HasSubstr("values for an input of int64, found none"));
}

}  // namespace
}  // namespace tessera::ops
