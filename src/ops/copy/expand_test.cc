#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Expand, BroadcastsBothWays) {
  const auto outputs = run_op("Expand", 13, {}, {floats({2, 1}, {1, 2}), ints({2, 1, 3})});
  EXPECT_THAT(outputs[0].dims(), ElementsAre(2, 2, 3));
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(run_op("Expand", 13, {}, {floats({3}, {1, 2, 3}), ints({1})})[0].dims(),
              ElementsAre(3));
}

TEST(Expand, RefusesWhatDoesNotBroadcast) {
  EXPECT_THAT(refusal("Expand", 13, {}, {floats({3}, {1, 2, 3}), ints({2})}),
              HasSubstr("found 3 and 2"));
  EXPECT_THAT(refusal("Expand", 13, {}, {floats({1}, {1}), ints({kSmallest})}),
              HasSubstr("at least 0"));
  EXPECT_THAT(refusal("Expand", 13, {}, {floats({1}, {1}), ints({kLargest, kLargest})}),
              HasSubstr("exceeds 64 bits"));
}

TEST(Expand, TakesSymbolsFromTheShape) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(shape_text(infer_op("Expand", 13, {},
                                {typed(DataType::Float32, Shape{1, 3}), followed({n, 1})})),
            "float32 nx3");
  EXPECT_EQ(shape_text(infer_op("Expand", 13, {},
                                {typed(DataType::Float32, Shape{n, 3}), followed({4, 3})})),
            "float32 4x3");
}

}  // namespace
}  // namespace tessera::ops
