#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(ScatterNd, ReplacesElementsAndSlices) {
  const Tensor data = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(values(run_op("ScatterND", 11, {},
                            {data, ints({2, 2}, {0, 1, -1, 0}), floats({2}, {9, 8})})[0]),
              ElementsAre(1, 9, 8, 4));
  EXPECT_THAT(
      values(run_op("ScatterND", 11, {}, {data, ints({1, 1}, {1}), floats({1, 2}, {7, 6})})[0]),
      ElementsAre(1, 2, 7, 6));
}

TEST(ScatterNd, CombinesInOrder) {
  // 5 is combined with 3, then the result with 2.
  const std::pair<const char*, float> cases[] = {
      {"none", 2}, {"add", 10}, {"mul", 30}, {"max", 5}, {"min", 2}};
  for (const auto& [name, expected] : cases) {
    const auto outputs = run_op("ScatterND", 18, attributes_of({{"reduction", std::string(name)}}),
                                {floats({1}, {5}), ints({2, 1}, {0, 0}), floats({2}, {3, 2})});
    EXPECT_EQ(values(outputs[0])[0], expected) << name;
  }
}

TEST(ScatterNd, IntegersWrapAround) {
  const auto outputs = run_op("ScatterND", 16, attributes_of({{"reduction", "add"}}),
                              {ints({1}, {INT64_MAX}), ints({1, 1}, {0}), ints({1}, {1})});
  EXPECT_EQ(integers(outputs[0])[0], INT64_MIN);
}

TEST(ScatterNd, RefusesWhatDoesNotFit) {
  const Tensor data = floats({2}, {1, 2});
  const Tensor index = ints({1, 1}, {2});
  EXPECT_THAT(refusal("ScatterND", 16, attributes_of({{"reduction", "max"}}),
                      {data, index, floats({1}, {1})}),
              HasSubstr("'none', 'add' or 'mul', found 'max'"));
  EXPECT_THAT(refusal("ScatterND", 13, {}, {data, index, floats({1}, {1})}), HasSubstr("found 2"));
  EXPECT_THAT(refusal("ScatterND", 13, {}, {data, index, floats({2}, {1, 1})}),
              HasSubstr("expected shape 1, found 2"));
  EXPECT_THAT(refusal("ScatterND", 13, {}, {data, ints({1, 2}, {0, 0}), floats({1}, {1})}),
              HasSubstr("1 to 1"));
}

}  // namespace
}  // namespace tessera::ops
