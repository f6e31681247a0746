#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes codes_of(int64_t rows, int64_t columns, int64_t kind, int64_t is_transposed = 1) {
  return attributes_of({{"N", rows},
                        {"K", columns},
                        {"block_size", 16},
                        {"quant_type", kind},
                        {"transB", is_transposed}});
}

Tensor identity_matrix(int64_t size) {
  std::vector<float> elements(static_cast<size_t>(size * size), 0);
  for (int64_t index = 0; index < size; ++index) {
    elements[static_cast<size_t>(index * (size + 1))] = 1;
  }
  return floats({size, size}, elements);
}

// All 16 codes, the first of two in the upper bits.
const Tensor kAllCodes = unsigned_bytes({8}, {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF});

TEST(MatMulBnb4, DecodesSmallFloats) {
  const std::vector<Tensor> inputs = {identity_matrix(4), kAllCodes, floats({12})};
  EXPECT_THAT(values(run_microsoft("MatMulBnb4", codes_of(4, 4, 0, 0), inputs)[0]),
              ElementsAre(0, 0.0625F, 8, 12, 4, 6, 2, 3, 0, -0.0625F, -8, -12, -4, -6, -2, -3));
  // Transposed.
  EXPECT_THAT(values(run_microsoft("MatMulBnb4", codes_of(4, 4, 0), inputs)[0]),
              ElementsAre(0, 4, 0, -4, 0.0625F, 6, -0.0625F, -6, 8, 2, -8, -2, 12, 3, -12, -3));
}

TEST(MatMulBnb4, DecodesQuantilesOfTheNormalDistribution) {
  const Tensor y = run_microsoft("MatMulBnb4", codes_of(1, 16, 1, 0),
                                 {floats({1, 1}, {2}), kAllCodes, floats({0.5F})})[0];
  EXPECT_THAT(values(y),
              Pointwise(FloatNear(1e-6F),
                        std::vector<float>{-1, -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F,
                                           -0.18477343F, -0.091050036F, 0, 0.0795803F, 0.1609302F,
                                           0.24611230F, 0.33791524F, 0.44070983F, 0.562617F,
                                           0.72295684F, 1}));
}

TEST(MatMulBnb4, HasBlocksAcrossRows) {
  // 2 rows of 9 weights: the second block holds the last two.
  std::vector<uint8_t> codes(9, 0x33);
  const Tensor y = run_microsoft(
      "MatMulBnb4", codes_of(2, 9, 0),
      {floats({1, 9}, std::vector<float>(9, 1)), unsigned_bytes({9}, codes), floats({1, 10})})[0];
  EXPECT_THAT(values(y), ElementsAre(9, 27));
}

TEST(MatMulBnb4, RefusesWhatDoesNotFit) {
  const auto refusal = [](Attributes attributes, Shape rows, Shape codes, Shape scales) {
    return microsoft_refusal(
        "MatMulBnb4", std::move(attributes),
        {floating(std::move(rows)), bytewise(std::move(codes)), floating(std::move(scales))});
  };
  EXPECT_EQ(refusal(codes_of(4, 5, 0), {2, 5}, {10}, {2}), "");
  EXPECT_THAT(refusal(codes_of(4, 5, 2), {2, 5}, {10}, {2}), HasSubstr("'quant_type'"));
  EXPECT_THAT(refusal(codes_of(4, 5, 0), {2, 4}, {10}, {2}), HasSubstr("a last axis of 5"));
  EXPECT_THAT(refusal(codes_of(4, 5, 0), {2, 5}, {20}, {2}), HasSubstr("'B'"));
  EXPECT_THAT(refusal(codes_of(4, 5, 0), {2, 5}, {10}, {1}), HasSubstr("'absmax'"));
}

}  // namespace
}  // namespace tessera::ops
