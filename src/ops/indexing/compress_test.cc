#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes axis_of(int64_t axis) { return attributes_of({{"axis", axis}}); }

const Tensor kCompressInput = floats({3, 2}, {1, 2, 3, 4, 5, 6});

Tensor compress(const Attributes& attributes, const std::vector<uint8_t>& condition) {
  const auto count = static_cast<int64_t>(condition.size());
  return run_op("Compress", 11, attributes, {kCompressInput, bools({count}, condition)})[0];
}

TEST(Compress, TakesSlicesAlongAnAxis) {
  const struct {
    int64_t axis;
    std::vector<uint8_t> condition;
    std::vector<int64_t> shape;
    std::vector<float> expected;
  } cases[] = {
      {0, {0, 1, 1}, {2, 2}, {3, 4, 5, 6}},
      {1, {0, 1}, {3, 1}, {2, 4, 6}},
      {-1, {1, 0}, {3, 1}, {1, 3, 5}},
      {0, {0, 1}, {1, 2}, {3, 4}},  // shorter than the axis: the rest is dropped
      {0, {0, 0, 0}, {0, 2}, {}},
  };
  for (const auto& [axis, condition, shape, expected] : cases) {
    const Tensor found = compress(axis_of(axis), condition);
    EXPECT_EQ(found.dims(), shape);
    EXPECT_EQ(values(found), expected);
  }
}

TEST(Compress, TakesElementsOfAFlatInput) {
  const Tensor found = compress({}, {0, 1, 0, 0, 1});
  EXPECT_THAT(found.dims(), ElementsAre(2));
  EXPECT_THAT(values(found), ElementsAre(2, 5));
}

TEST(Compress, OnlyRunningTellsHowMany) {
  const InferInput input = typed(DataType::Float32, Shape{3, 2});
  const InferInput condition = typed(DataType::Bool, Shape{3});
  const Shape along = *infer_op("Compress", 11, axis_of(0), {input, condition})[0].type.shape;
  EXPECT_FALSE(along[0].is_known());
  EXPECT_EQ(along[1], Dim(2));
  const Shape flat = *infer_op("Compress", 11, {}, {input, condition})[0].type.shape;
  ASSERT_EQ(flat.size(), 1);
  EXPECT_FALSE(flat[0].is_known());
}

TEST(Compress, RefusesWhatDoesNotFit) {
  EXPECT_THAT(error_of([] { compress(axis_of(2), {1}); }), HasSubstr("axis"));
  EXPECT_THAT(error_of([] { compress(axis_of(1), {1, 1, 1}); }),
              HasSubstr("input 'condition': expected at most 2 elements, found 3"));
  EXPECT_THAT(error_of([] { compress({}, std::vector<uint8_t>(7, 1)); }),
              HasSubstr("expected at most 6 elements, found 7"));
  EXPECT_THAT(error_of([] { run_op("Compress", 11, {}, {kCompressInput, bools({1, 1}, {1})}); }),
              HasSubstr("expected one dimension"));
}

}  // namespace
}  // namespace tessera::ops
