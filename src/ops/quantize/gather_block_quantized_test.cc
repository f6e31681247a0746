#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes blocks_of(int64_t bits, int64_t block = 16, int64_t axis = -1) {
  return attributes_of({{"bits", bits}, {"block_size", block}, {"quantize_axis", axis}});
}

TEST(GatherBlockQuantized, ReadsSlicesAsRealNumbers) {
  // Two rows of 4 weights: 1, 2, 3, 4 and 15, 14, 0, 8.
  const Tensor data = unsigned_bytes({2, 2}, {0x21, 0x43, 0xEF, 0x80});
  const Tensor scales = floats({2, 1}, {1, 0.5F});
  const Tensor y =
      run_microsoft("GatherBlockQuantized", blocks_of(4), {data, ints({1, -2}), scales})[0];
  EXPECT_THAT(values(y), ElementsAre(3.5F, 3, -4, 0, -7, -6, -5, -4));
  const Tensor shifted =
      run_microsoft("GatherBlockQuantized", blocks_of(4),
                    {data, ints({}, {0}), scales, unsigned_bytes({2, 1}, {2, 1})})[0];
  EXPECT_EQ(shifted.dims().size(), 1U);
  EXPECT_THAT(values(shifted), ElementsAre(-1, 0, 1, 2));
}

TEST(GatherBlockQuantized, GivesZerosForIndicesOutside) {
  const Tensor data = unsigned_bytes({1, 1}, {0x21});
  const Tensor y = run_microsoft("GatherBlockQuantized", blocks_of(4),
                                 {data, ints({1, 0, -2}), floats({1, 1}, {1})})[0];
  EXPECT_THAT(values(y), ElementsAre(0, 0, -7, -6, 0, 0));
}

TEST(GatherBlockQuantized, HasAScaleForEachBlock) {
  std::vector<uint8_t> bytes(20, 130);
  const Tensor y =
      run_microsoft("GatherBlockQuantized", blocks_of(8),
                    {unsigned_bytes({1, 20}, bytes), ints({0}), floats({1, 2}, {1, 10})})[0];
  EXPECT_EQ(values(y)[15], 2);
  EXPECT_EQ(values(y)[16], 20);
  // Weights of 2 bits: 0, 1, 2, 3 with zero points 1 and 3 of two blocks.
  const std::vector<uint8_t> pairs(5, 0xE4);
  const Tensor small = run_microsoft("GatherBlockQuantized", blocks_of(2),
                                     {unsigned_bytes({1, 5}, pairs), ints({0}),
                                      floats({1, 2}, {1, 1}), unsigned_bytes({1, 1}, {0x0D})})[0];
  EXPECT_EQ(small.dims()[1], 20);
  EXPECT_EQ(values(small)[0], -1);
  EXPECT_EQ(values(small)[16], -3);
}

TEST(GatherBlockQuantized, HasBlocksAlongAnInnerAxis) {
  const Tensor data = unsigned_bytes({1, 2, 2}, {129, 130, 131, 132});
  const Tensor y = run_microsoft("GatherBlockQuantized", blocks_of(8, 16, 1),
                                 {data, ints({0}), floats({1, 1, 2}, {1, 100})})[0];
  EXPECT_THAT(values(y), ElementsAre(1, 200, 3, 400));
}

TEST(GatherBlockQuantized, RefusesWhatDoesNotFit) {
  const auto refusal = [](Attributes attributes, Shape data, Shape scales,
                          ErrorKind kind = ErrorKind::InvalidModel) {
    return microsoft_refusal(
        "GatherBlockQuantized", std::move(attributes),
        {bytewise(std::move(data)), typed(DataType::Int64, Shape{3}), floating(std::move(scales))},
        kind);
  };
  EXPECT_EQ(refusal(blocks_of(4), {5, 16}, {5, 2}), "");
  EXPECT_THAT(refusal(blocks_of(4), {5, 16}, {5, 1}), HasSubstr("expected shape [5x2]"));
  EXPECT_THAT(refusal(blocks_of(3), {5, 16}, {5, 2}), HasSubstr("'bits'"));
  EXPECT_THAT(refusal(blocks_of(4, 8), {5, 16}, {5, 2}), HasSubstr("'block_size'"));
  EXPECT_THAT(refusal(blocks_of(4, 16, 0), {5, 16}, {5, 2}), HasSubstr("'quantize_axis'"));
  EXPECT_THAT(refusal(blocks_of(4, 16, 1), {5, 16, 2}, {5, 1, 4}, ErrorKind::Unsupported),
              HasSubstr("last axis only"));
}

}  // namespace
}  // namespace tessera::ops
