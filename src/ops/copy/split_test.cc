#include <limits>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Split, PartsAreEqualOrAsGiven) {
  const Tensor input = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto equal = run_op("Split", 11, attributes_of({{"axis", -1}}), {input}, 3);
  EXPECT_THAT(values(equal[1]), ElementsAre(2, 5));
  const auto given = attributes_of({{"axis", 1}, {"split", {1, 2}}});
  EXPECT_THAT(values(run_op("Split", 11, given, {input}, 2)[1]), ElementsAre(2, 3, 5, 6));
  const auto by_input = run_op("Split", 13, attributes_of({{"axis", 1}}), {input, ints({3, 0})}, 2);
  EXPECT_THAT(by_input[1].dims(), ElementsAre(2, 0));
}

TEST(Split, TheLastPartMayBeSmallerSinceVersion18) {
  const Tensor input = floats({5}, {1, 2, 3, 4, 5});
  const auto outputs = run_op("Split", 18, attributes_of({{"num_outputs", 3}}), {input}, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2));
  EXPECT_THAT(values(outputs[2]), ElementsAre(5));
}

TEST(Split, PartsAreEqualWhereNothingSaysOtherwise) {
  const Tensor input = floats({4}, {1, 2, 3, 4});
  for (const int version : {13, 18}) {
    EXPECT_THAT(values(run_op("Split", version, {}, {input}, 2)[1]), ElementsAre(3, 4));
  }
}

TEST(Split, FollowsElementsAndSymbols) {
  const auto parts =
      infer_op("Split", 13, {}, {followed({Dim::symbol("a"), 2, 3}), followed({1, 2})}, 2);
  EXPECT_EQ(*parts[1].elements, (std::vector<Dim>{2, 3}));
  const Dim batch = Dim::symbol("batch");
  const auto halves = infer_op("Split", 13, {}, {typed(DataType::Float32, Shape{batch})}, 2);
  EXPECT_EQ(*halves[1].type.shape, Shape{floor_divide(batch, 2)});
}

TEST(Split, RefusesSizesThatDoNotAddUp) {
  struct Case {
    std::vector<int64_t> sizes;
    const char* expected;
  };
  const Case cases[] = {{{1, 2}, "with the sum 4, found 3"},
                        {{5, -1}, "at least 0, found -1"},
                        {{std::numeric_limits<int64_t>::max(), 5}, "fits 64 bits"},
                        {{4}, "one size for each of 2 outputs, found 1"}};
  const Tensor input = floats({4}, {1, 2, 3, 4});
  for (const Case& item : cases) {
    EXPECT_THAT(refusal("Split", 13, {}, {input, ints(item.sizes)}, 2), HasSubstr(item.expected));
    EXPECT_THAT(refusal("Split", 11, attributes_of({{"split", item.sizes}}), {input}, 2),
                HasSubstr(item.expected));
  }
  EXPECT_THAT(refusal("Split", 13, {}, {input}, 3), HasSubstr("3 outputs divide evenly, found 4"));
  EXPECT_THAT(refusal("Split", 18, attributes_of({{"num_outputs", 3}}), {input}, 2),
              HasSubstr("the number of outputs, 2, found 3"));
}

}  // namespace
}  // namespace tessera::ops
