#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(OneHot, PutsTheNewAxisAnywhere) {
  const Tensor values_pair = floats({2}, {0, 1});
  const auto last = run_op("OneHot", 11, {}, {ints({0, -1, 5}), ints({}, {3}), values_pair});
  EXPECT_THAT(last[0].dims(), ElementsAre(3, 3));
  EXPECT_THAT(values(last[0]), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0));
  const auto first = run_op("OneHot", 11, attributes_of({{"axis", 0}}),
                            {ints({1, 0}), ints({1}, {2}), values_pair});
  EXPECT_THAT(values(first[0]), ElementsAre(0, 1, 1, 0));
}

TEST(OneHot, WrapsSinceVersion11) {
  // Version 9: "indices [...] outside the range [0, depth) will result in one-hot representation
  // with all 'off_value' values".
  const std::vector<Tensor> inputs = {ints({2}, {-1, -4}), ints({}, {3}), floats({2}, {0, 1})};
  EXPECT_THAT(values(run_op("OneHot", 9, {}, inputs)[0]), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(values(run_op("OneHot", 11, {}, inputs)[0]), ElementsAre(0, 0, 1, 0, 0, 0));
}

TEST(OneHot, TakesFloatsForNumbers) {
  const auto outputs =
      run_op("OneHot", 9, {}, {floats({2}, {1, NAN}), floats({}, {2.9F}), floats({2}, {0, 1})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 1, 0, 0));
}

TEST(OneHot, RefusesADepthThatIsNone) {
  const Tensor on_off = floats({2}, {0, 1});
  EXPECT_THAT(refusal("OneHot", 11, {}, {ints({0}), ints({}, {-1}), on_off}),
              HasSubstr("found -1"));
  EXPECT_THAT(refusal("OneHot", 11, {}, {ints({0}), floats({}, {NAN}), on_off}),
              HasSubstr("64 bits"));
  EXPECT_THAT(refusal("OneHot", 11, {}, {ints({0}), ints({}, {1}), floats({1}, {0})}),
              HasSubstr("two elements"));
}

}  // namespace
}  // namespace tessera::ops
