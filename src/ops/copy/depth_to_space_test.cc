#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(DepthToSpace, OrdersBlocksByMode) {
  const Tensor input = floats({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto depth_first = run_op("DepthToSpace", 13, attributes_of({{"blocksize", 2}}), {input});
  EXPECT_THAT(depth_first[0].dims(), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(values(depth_first[0]), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  const auto column_first =
      run_op("DepthToSpace", 13, attributes_of({{"blocksize", 2}, {"mode", "CRD"}}), {input});
  EXPECT_THAT(values(column_first[0]), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(SpaceToDepth, IsTheInverse) {
  for (const char* mode : {"DCR", "CRD"}) {
    const auto given = attributes_of({{"blocksize", 2}, {"mode", std::string(mode)}});
    std::vector<float> numbers;
    for (int number = 0; number < 48; ++number) numbers.push_back(static_cast<float>(number));
    const Tensor input = floats({1, 2, 4, 6}, numbers);
    const auto depth = run_op("SpaceToDepth", 28, given, {input});
    EXPECT_THAT(depth[0].dims(), ElementsAre(1, 8, 2, 3));
    EXPECT_EQ(values(run_op("DepthToSpace", 28, given, {depth[0]})[0]), numbers) << mode;
  }
}

TEST(DepthToSpace, RefusesWhatDoesNotDivide) {
  const Tensor input(DataType::Float32, {1, 6, 2, 2});
  const auto message = [&](int64_t block) {
    return refusal("DepthToSpace", 13, attributes_of({{"blocksize", block}}), {input});
  };
  EXPECT_THAT(message(2), HasSubstr("multiple of 4, found shape 1x6x2x2"));
  EXPECT_THAT(message(0), HasSubstr("at least 1"));
  EXPECT_THAT(message(int64_t{1} << 40), HasSubstr("square fits 64 bits"));
}

}  // namespace
}  // namespace tessera::ops
