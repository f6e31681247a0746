#include <algorithm>
#include <cmath>

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

TEST(Normalizer, DividesRowsOfAnyLength) {
  for (int64_t length = 1; length <= 21; ++length) {
    std::vector<float> row;
    for (int64_t at = 0; at < length; ++at) row.push_back(static_cast<float>((at * 7) % 19 - 9.5));
    double largest = -kInfinity, sum = 0, squares = 0;
    for (const double number : row) {
      largest = std::max(largest, number);
      sum += std::abs(number);
      squares += number * number;
    }
    const std::pair<const char*, double> divisors[] = {
        {"MAX", largest}, {"L1", sum}, {"L2", std::sqrt(squares)}};
    for (const auto& [norm, divisor] : divisors) {
      const std::vector<float> found = values(normalized_rows(norm, floats({1, length}, row)));
      for (size_t at = 0; at < row.size(); ++at) {
        EXPECT_FLOAT_EQ(found[at], static_cast<float>(row[at] / divisor)) << norm << " " << length;
      }
    }
  }
}

TEST(Normalizer, IgnoresNanAsMaximum) {
  for (const size_t place : {0, 3, 9}) {
    std::vector<float> row = {1, 2, 0.5F, 4, 1, 1, 1, 1, 2, 8};
    row[place] = kNan;
    const float largest = place == 9 ? 4 : 8;
    const std::vector<float> found = values(normalized_rows("MAX", floats({1, 10}, row)));
    EXPECT_EQ(found[1], 2 / largest);
    EXPECT_TRUE(std::isnan(found[place]));
  }
}

// The inverse of such a divisor is no number.
TEST(Normalizer, DividesByTheSmallestNumbers) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_THAT(values(normalized_rows("L1", doubles({1, 3}, {3 * tiny, tiny, 0}))),
              ElementsAre(0.75F, 0.25F, 0));
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
