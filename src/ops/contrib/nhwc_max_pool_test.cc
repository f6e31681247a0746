#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

Attributes of_kernel(std::vector<int64_t> kernel) {
  return attributes_of({{"kernel_shape", std::move(kernel)}});
}

TEST(NhwcMaxPool, PoolsEachChannel) {
  const Tensor input =
      Tensor::from<int8_t>(DataType::Int8, {1, 1, 3, 2}, std::vector<int8_t>{1, -9, 3, -7, 2, -8});
  const auto pooled = run_contrib("NhwcMaxPool", of_kernel({1, 2}), {input});
  EXPECT_THAT(pooled[0].dims(), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(pooled[0].as<int8_t>(), ElementsAre(3, -7, 3, -7));
}

TEST(NhwcMaxPool, PadsAndRefuses) {
  const Tensor input =
      Tensor::from<uint8_t>(DataType::UInt8, {1, 3, 1}, std::vector<uint8_t>{5, 6, 7});
  Attributes given = of_kernel({2});
  given.set("pads", std::vector<int64_t>{1, 0});
  EXPECT_THAT(bytes(run_contrib("NhwcMaxPool", given, {input})[0]), ElementsAre(5, 6, 7));
  EXPECT_THAT(contrib_refusal("NhwcMaxPool", of_kernel({2, 2}), {input}),
              HasSubstr("'kernel_shape' of 1 numbers"));
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(
      contrib_type("NhwcMaxPool", of_kernel({2, 2}), {typed(DataType::UInt8, Shape{n, 4, 5, 3})}),
      "uint8 nx3x4x3");
}

// Each row of a window ends at the first zero of the mask.
TEST(MaxpoolWithMask, EndsRowsAtTheMask) {
  const Tensor input = floats({1, 1, 2, 3}, {1, 2, 9, 3, 9, 4});
  const auto mask = [](std::vector<int32_t> flags) {
    return Tensor::from<int32_t>(DataType::Int32, {1, 1, 2, 3}, flags);
  };
  const auto run = [&](const Tensor& flags) {
    return values(run_contrib("MaxpoolWithMask", of_kernel({2, 3}), {input, flags})[0]);
  };
  EXPECT_THAT(run(mask({1, 1, 1, 1, 1, 1})), ElementsAre(9));
  EXPECT_THAT(run(mask({1, 1, 0, 1, 0, 1})), ElementsAre(3));
  EXPECT_THAT(run(mask({0, 0, 0, 0, 0, 0})), ElementsAre(1));
  EXPECT_THAT(contrib_refusal("MaxpoolWithMask", {}, {input, mask({1, 1, 1, 1, 1, 1})}),
              HasSubstr("'kernel_shape'"));
  EXPECT_THAT(contrib_refusal("MaxpoolWithMask", of_kernel({1, 1}),
                              {floats({1, 1, 1, 2}, {1, 2}), mask({1, 1, 1, 1, 1, 1})}),
              HasSubstr("expected shape [1x1x1x2]"));
}

}  // namespace
}  // namespace tessera::ops
