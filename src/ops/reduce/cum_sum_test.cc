#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(CumSum, InBothDirectionsWithAndWithoutItself) {
  const Tensor input = floats({3}, {1, 2, 3});
  const auto run = [&](int64_t exclusive, int64_t reverse) {
    const auto given = attributes_of({{"exclusive", exclusive}, {"reverse", reverse}});
    return values(run_op("CumSum", 14, given, {input, ints({}, {0})})[0]);
  };
  EXPECT_THAT(run(0, 0), ElementsAre(1, 3, 6));
  EXPECT_THAT(run(1, 0), ElementsAre(0, 1, 3));
  EXPECT_THAT(run(0, 1), ElementsAre(6, 5, 3));
  EXPECT_THAT(run(1, 1), ElementsAre(5, 3, 0));
}

TEST(CumSum, RunsAlongTheAxisAndWraps) {
  const auto rows = run_op("CumSum", 14, {}, {floats({2, 2}, {1, 2, 3, 4}), ints({}, {-2})});
  EXPECT_THAT(values(rows[0]), ElementsAre(1, 2, 4, 6));
  const auto wrapped = run_op("CumSum", 14, {}, {ints({INT64_MAX, 1}), ints({}, {0})});
  EXPECT_THAT(integers(wrapped[0]), ElementsAre(INT64_MAX, INT64_MIN));
  EXPECT_THAT(refusal("CumSum", 14, {}, {floats({1}, {1}), ints({}, {1})}), HasSubstr("[-1, 1)"));
}

TEST(CumProd, InBothDirectionsWithAndWithoutItself) {
  const Tensor input = floats({3}, {2, 3, 4});
  const auto run = [&](int64_t exclusive, int64_t reverse) {
    const auto given = attributes_of({{"exclusive", exclusive}, {"reverse", reverse}});
    return values(run_op("CumProd", 26, given, {input, ints({}, {0})})[0]);
  };
  EXPECT_THAT(run(0, 0), ElementsAre(2, 6, 24));
  EXPECT_THAT(run(1, 0), ElementsAre(1, 2, 6));
  EXPECT_THAT(run(0, 1), ElementsAre(24, 12, 4));
  EXPECT_THAT(run(1, 1), ElementsAre(12, 4, 1));
}

TEST(CumProd, RunsAlongTheAxisAndWraps) {
  const auto rows = run_op("CumProd", 26, {}, {floats({2, 2}, {1, 2, 3, 4}), ints({}, {0})});
  EXPECT_THAT(values(rows[0]), ElementsAre(1, 2, 3, 8));
  const auto wrapped = run_op("CumProd", 26, {}, {ints({INT64_MAX, 2}), ints({}, {-1})});
  EXPECT_THAT(integers(wrapped[0]), ElementsAre(INT64_MAX, -2));
  EXPECT_THAT(refusal("CumProd", 26, {}, {floats({1}, {1}), ints({}, {1})}), HasSubstr("[-1, 1)"));
}

}  // namespace
}  // namespace tessera::ops
