#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const Tensor kTopKInput = floats({2, 4}, {3, 1, 4, 1, 5, 9, 2, 6});

TEST(TopK, GivesValuesAndIndices) {
  const struct {
    int64_t axis;
    int64_t largest;
    int64_t count;
    std::vector<int64_t> shape;
    std::vector<float> expected;
    std::vector<int64_t> indices;
  } cases[] = {
      {-1, 1, 2, {2, 2}, {4, 3, 9, 6}, {2, 0, 1, 3}},
      {1, 0, 3, {2, 3}, {1, 1, 3, 2, 5, 6}, {1, 3, 0, 2, 0, 3}},
      {0, 1, 1, {1, 4}, {5, 9, 4, 6}, {1, 1, 0, 1}},
      {0, 1, 2, {2, 4}, {5, 9, 4, 6, 3, 1, 2, 1}, {1, 1, 0, 1, 0, 0, 1, 0}},
      {-1, 1, 0, {2, 0}, {}, {}},
  };
  for (const auto& [axis, largest, count, shape, expected, indices] : cases) {
    const std::vector<Tensor> found =
        run_op("TopK", 11, attributes_of({{"axis", axis}, {"largest", largest}}),
               {kTopKInput, ints({1}, {count})}, 2);
    EXPECT_EQ(found[0].dims(), shape);
    EXPECT_EQ(values(found[0]), expected);
    EXPECT_EQ(integers(found[1]), indices);
  }
}

TEST(TopK, OlderVersionsTakeTheLargest) {
  EXPECT_THAT(values(run_op("TopK", 1, attributes_of({{"k", 1}}), {kTopKInput}, 2)[0]),
              ElementsAre(4, 9));
  EXPECT_THAT(values(run_op("TopK", 10, {}, {kTopKInput, ints({1}, {1})}, 2)[0]),
              ElementsAre(4, 9));
}

TEST(TopK, NanIsTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor input = floats({4}, {1, nan, 2, nan});
  const auto indices = [&](int64_t largest) {
    return integers(
        run_op("TopK", 11, attributes_of({{"largest", largest}}), {input, ints({1}, {3})}, 2)[1]);
  };
  EXPECT_THAT(indices(1), ElementsAre(1, 3, 2));
  EXPECT_THAT(indices(0), ElementsAre(0, 2, 1));
}

TEST(TopK, RefusesWhatThereIsNot) {
  const auto run = [](const Attributes& attributes, std::vector<int64_t> count) {
    const auto size = static_cast<int64_t>(count.size());
    return error_of([&] { run_op("TopK", 11, attributes, {kTopKInput, ints({size}, count)}, 2); });
  };
  EXPECT_THAT(run({}, {5}), HasSubstr("expected at most 4 elements along axis 1, found 5"));
  EXPECT_THAT(run({}, {-1}), HasSubstr("of 0 or more, found -1"));
  EXPECT_THAT(run({}, {1, 2}), HasSubstr("input 'K': expected one element, found 2"));
  EXPECT_THAT(run(attributes_of({{"axis", 2}}), {1}), HasSubstr("axis"));
}

TEST(TopK, TheLengthIsUnknownUntilKIs) {
  const auto outputs = infer_op(
      "TopK", 11, {}, {typed(DataType::Float32, Shape{2, 4}), typed(DataType::Int64, Shape{1})}, 2);
  EXPECT_EQ((*outputs[0].type.shape)[0], Dim(2));
  EXPECT_FALSE((*outputs[0].type.shape)[1].is_known());
}

}  // namespace
}  // namespace tessera::ops
