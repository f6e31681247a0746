#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Concat, JoinsAlongAnInnerAxis) {
  const Tensor left = floats({2, 1}, {1, 4});
  const Tensor right = floats({2, 2}, {2, 3, 5, 6});
  for (const int64_t axis : {1, -1}) {
    const auto outputs = run_op("Concat", 13, attributes_of({{"axis", axis}}), {left, right});
    EXPECT_THAT(outputs[0].dims(), ElementsAre(2, 3));
    EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(Concat, AnInputWithoutElementsAddsNothing) {
  const auto outputs = run_op("Concat", 13, attributes_of({{"axis", 0}}),
                              {floats({0, 2}, {}), floats({1, 2}, {7, 8})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(7, 8));
}

TEST(Concat, AddsSymbolsAndTakesTheKnownOfTwoDimensions) {
  const Dim batch = Dim::symbol("batch");
  const auto outputs = infer_op("Concat", 13, attributes_of({{"axis", 0}}),
                                {typed(DataType::Float32, Shape{batch, Dim::symbol("width")}),
                                 typed(DataType::Float32, Shape{2, 5})});
  EXPECT_EQ(*outputs[0].type.shape, (Shape{add(batch, 2), 5}));
}

TEST(Concat, FollowsElements) {
  const auto outputs = infer_op("Concat", 13, attributes_of({{"axis", 0}}),
                                {followed({Dim::symbol("batch")}), followed({-1, 4})});
  EXPECT_EQ(*outputs[0].elements, (std::vector<Dim>{Dim::symbol("batch"), -1, 4}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  const Tensor input = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal("Concat", 13, attributes_of({{"axis", 2}}), {input}), HasSubstr("[-2, 2)"));
  EXPECT_THAT(
      refusal("Concat", 13, attributes_of({{"axis", 0}}), {input, floats({1, 3}, {1, 2, 3})}),
      HasSubstr("expected dimension 1 to be 2"));
  EXPECT_THAT(refusal("Concat", 13, attributes_of({{"axis", 0}}), {input, floats({}, {1})}),
              HasSubstr("expected rank 2"));
}

}  // namespace
}  // namespace tessera::ops
