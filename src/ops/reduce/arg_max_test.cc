#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(ArgMax, FindsTheFirstOrTheLast) {
  const Tensor input = floats({2, 3}, {5, 1, 5, 2, 2, 0});
  const auto first = attributes_of({{"axis", 1}, {"keepdims", 0}});
  EXPECT_THAT(integers(run_op("ArgMax", 11, first, {input})[0]), ElementsAre(0, 0));
  EXPECT_THAT(integers(run_op("ArgMin", 11, first, {input})[0]), ElementsAre(1, 2));
  const auto last = attributes_of({{"axis", -1}, {"select_last_index", 1}});
  const auto outputs = run_op("ArgMax", 13, last, {input});
  EXPECT_THAT(outputs[0].dims(), ElementsAre(2, 1));
  EXPECT_THAT(integers(outputs[0]), ElementsAre(2, 1));
  EXPECT_THAT(integers(run_op("ArgMax", 13, {}, {input})[0]), ElementsAre(0, 1, 0));
}

TEST(ArgMax, TheFirstNanWinsAsInNumpy) {
  const Tensor input = floats({4}, {1, NAN, 3, NAN});
  EXPECT_THAT(integers(run_op("ArgMax", 13, {}, {input})[0]), ElementsAre(1));
  EXPECT_THAT(integers(run_op("ArgMin", 13, {}, {input})[0]), ElementsAre(1));
}

TEST(ArgMax, RefusesALineWithoutElements) {
  EXPECT_THAT(refusal("ArgMax", 13, {}, {floats({0, 2}, {})}), HasSubstr("along axis 0"));
  EXPECT_THAT(refusal("ArgMax", 13, attributes_of({{"axis", 1}}), {floats({1}, {1})}),
              HasSubstr("[-1, 1)"));
}

}  // namespace
}  // namespace tessera::ops
