#include "base/tensor/float16.h"
#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes sizes_of(int64_t columns, int64_t depth, int64_t bits, int64_t block = 16) {
  return attributes_of({{"N", columns}, {"K", depth}, {"bits", bits}, {"block_size", block}});
}

TEST(MatMulNBits, ReadsTheLowBitsFirst) {
  // One column of 18 weights of 4 bits in two blocks: 1, 2, ..., 15, 0 and 9, 7.
  const Tensor weights = unsigned_bytes(
      {1, 2, 8}, {0x21, 0x43, 0x65, 0x87, 0xA9, 0xCB, 0xED, 0x0F, 0x79, 0, 0, 0, 0, 0, 0, 0});
  const Tensor scales = floats({1, 2}, {1, 10});
  std::vector<float> rows(2 * 18, 0);
  rows[0] = 1;         // the first weight of the first block
  rows[18 + 15] = 1;   // its last one
  rows[18 + 16] = 10;  // the first one of the second block
  const std::vector<Tensor> inputs = {floats({2, 18}, rows), weights, scales};
  // The zero point is 8: -7, then -8 and 10 times 10.
  EXPECT_THAT(values(run_microsoft("MatMulNBits", sizes_of(1, 18, 4), inputs)[0]),
              ElementsAre(-7, 92));
}

TEST(MatMulNBits, HasWeightsOfTwoAndEightBits) {
  const Tensor ones = floats({1, 16}, std::vector<float>(16, 1));
  // Weights 0, 1, 2, 3 four times, minus 2, times 3.
  const Tensor pairs = unsigned_bytes({1, 1, 4}, {0xE4, 0xE4, 0xE4, 0xE4});
  EXPECT_THAT(
      values(run_microsoft("MatMulNBits", sizes_of(1, 16, 2), {ones, pairs, floats({3})})[0]),
      ElementsAre(-24));
  std::vector<uint8_t> bytes(16, 128);
  bytes[3] = 255;
  const Tensor whole = unsigned_bytes({1, 1, 16}, bytes);
  EXPECT_THAT(
      values(run_microsoft("MatMulNBits", sizes_of(1, 16, 8), {ones, whole, floats({2})})[0]),
      ElementsAre(254));
}

TEST(MatMulNBits, HasZeroPointsOfBitsOrNumbers) {
  const Tensor one = floats({1, 32}, std::vector<float>(32, 1));
  const Tensor weights = unsigned_bytes({2, 2, 8}, std::vector<uint8_t>(32, 0x55));
  const Tensor scales = floats({2, 2}, {1, 1, 1, 1});
  const auto run = [&](const Tensor& zeros) {
    return values(
        run_microsoft("MatMulNBits", sizes_of(2, 32, 4), {one, weights, scales, zeros})[0]);
  };
  // Column 0: zero points 4 and 3, column 1: 5 and 7.
  EXPECT_THAT(run(unsigned_bytes({2, 1}, {0x34, 0x75})), ElementsAre(48, -32));
  EXPECT_THAT(run(unsigned_bytes({2}, {0x34, 0x75})), ElementsAre(48, -32));
  EXPECT_THAT(run(floats({2, 2}, {4, 3, 5, 7})), ElementsAre(48, -32));
  EXPECT_THAT(run(floats({2, 2}, {4.5F, 3, 5, 7})), ElementsAre(40, -32));
}

TEST(MatMulNBits, TakesGroupsAndABias) {
  const Tensor rows = floats({1, 32}, std::vector<float>(32, 1));
  const Tensor weights = unsigned_bytes({1, 2, 8}, std::vector<uint8_t>(16, 0x99));
  std::vector<int32_t> groups(32, 1);
  groups[0] = 0;
  const Tensor indices = Tensor::from<int32_t>(DataType::Int32, {32}, groups);
  const Tensor scales = floats({1, 2}, {100, 1});
  const std::vector<Tensor> inputs = {rows, weights, scales, Tensor(), indices, floats({0.5F})};
  EXPECT_THAT(values(run_microsoft("MatMulNBits", sizes_of(1, 32, 4), inputs)[0]),
              ElementsAre(131.5F));
  groups[5] = 2;
  std::vector<Tensor> wrong = inputs;
  wrong[4] = Tensor::from<int32_t>(DataType::Int32, {32}, groups);
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] { run_microsoft("MatMulNBits", sizes_of(1, 32, 4), wrong); }),
              HasSubstr("[0, 2) in input 'g_idx', found 2"));
}

TEST(MatMulNBits, RoundsFloat16Once) {
  const auto halves = [](std::vector<int64_t> dims, float value) {
    const auto count = static_cast<size_t>(element_count(dims));
    return Tensor::from<Float16>(DataType::Float16, std::move(dims),
                                 std::vector<Float16>(count, Float16(value)));
  };
  // 4096 times 7 / 4096 is 7; float16 could not add the terms one by one.
  const Tensor weights = unsigned_bytes({1, 256, 8}, std::vector<uint8_t>(2048, 0xFF));
  const Tensor y = run_microsoft("MatMulNBits", sizes_of(1, 4096, 4),
                                 {halves({1, 4096}, 1), weights, halves({1, 256}, 1.0F / 4096)})[0];
  EXPECT_EQ(static_cast<float>(y.as<Float16>()[0]), 7);
}

TEST(MatMulNBits, RefusesWhatDoesNotFit) {
  const auto refusal = [](Attributes attributes, std::vector<InferInput> inputs,
                          ErrorKind kind = ErrorKind::InvalidModel) {
    return microsoft_refusal("MatMulNBits", std::move(attributes), std::move(inputs), kind);
  };
  const std::vector<InferInput> right = {floating({Dim::symbol("rows"), Dim(32)}),
                                         bytewise({3, 2, 8}), floating({3, 2})};
  EXPECT_EQ(refusal(sizes_of(3, 32, 4), right), "");
  EXPECT_THAT(refusal(sizes_of(3, 33, 4), right), HasSubstr("expected shape [3x3x8]"));
  EXPECT_THAT(refusal(sizes_of(3, 32, 9), right), HasSubstr("'bits': expected 2 to 8, found 9"));
  EXPECT_THAT(refusal(sizes_of(3, 32, 3), right, ErrorKind::Unsupported), HasSubstr("found 3"));
  EXPECT_THAT(refusal(sizes_of(3, 32, 4, 24), right), HasSubstr("'block_size'"));
  EXPECT_THAT(refusal(sizes_of(-3, 32, 4), right), HasSubstr("'N'"));
  std::vector<InferInput> wrong = right;
  wrong[0] = floating({2, 16});
  EXPECT_THAT(refusal(sizes_of(3, 32, 4), wrong), HasSubstr("a last axis of 32"));
  wrong = right;
  wrong.push_back(typed(DataType::Float16, Shape{3, 2}));
  EXPECT_THAT(refusal(sizes_of(3, 32, 4), wrong), HasSubstr("expected uint8 or float32"));
  wrong[3] = bytewise({3, 2});
  EXPECT_THAT(refusal(sizes_of(3, 32, 4), wrong), HasSubstr("expected shape [3x1]"));
}

}  // namespace
}  // namespace tessera::ops
