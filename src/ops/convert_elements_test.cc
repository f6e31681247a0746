#include "ops/convert_elements.h"

#include <limits>
#include <vector>

#include "base/tensor/float16.h"
#include "ops/op_test.h"

namespace tessera::ops {
namespace {

template <class To, class From>
std::vector<To> converted(DataType from, DataType to, const std::vector<From>& source) {
  std::vector<To> target(source.size());
  convert_elements(from, source.data(), to, target.data(), static_cast<int64_t>(source.size()));
  return target;
}

const std::vector<float> kHard = {kNan, kInfinity, -kInfinity, 3e9F, -1.5F, 1.9F, 300, 3e38F};

TEST(ConvertElements, FloatsOutOfRangeSaturateOrWrap) {
  EXPECT_THAT(converted<int32_t>(DataType::Float32, DataType::Int32, kHard),
              ElementsAre(0, 2147483647, -2147483648, 2147483647, -1, 1, 300, 2147483647));
  EXPECT_THAT(
      converted<int64_t>(DataType::Float32, DataType::Int64, kHard),
      ElementsAre(0, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(),
                  3000000000, -1, 1, 300, std::numeric_limits<int64_t>::max()));
  // The lowest bits, as in ONNX Runtime: 300 gives 44, -1 gives 255.
  EXPECT_THAT(converted<uint8_t>(DataType::Float32, DataType::UInt8, kHard),
              ElementsAre(0, 255, 0, 0, 255, 1, 44, 255));
  EXPECT_EQ(converted<uint64_t>(DataType::Float32, DataType::UInt64, kHard)[7],
            std::numeric_limits<uint64_t>::max());
  const std::vector<double> large = {0x1.8p63};
  EXPECT_EQ(converted<uint64_t>(DataType::Float64, DataType::UInt64, large)[0], uint64_t{3} << 62);
}

TEST(ConvertElements, IntegersKeepTheirLowestBits) {
  const std::vector<int16_t> source = {200, -1, 300};
  EXPECT_THAT(converted<int8_t>(DataType::Int16, DataType::Int8, source), ElementsAre(-56, -1, 44));
  EXPECT_THAT(converted<uint32_t>(DataType::Int16, DataType::UInt32, source),
              ElementsAre(200, 4294967295U, 300));
}

TEST(ConvertElements, BoolsAreZeroOrNot) {
  const std::vector<float> source = {kNan, 0.2F, -0.0F, 2};
  EXPECT_THAT(converted<uint8_t>(DataType::Float32, DataType::Bool, source),
              ElementsAre(1, 1, 0, 1));
  const std::vector<uint8_t> damaged = {0, 1, 7};
  EXPECT_THAT(converted<float>(DataType::Bool, DataType::Float32, damaged), ElementsAre(0, 1, 1));
}

TEST(ConvertElements, SixteenBitsAreRoundedOnce) {
  // Rounded to float32 first, each of these would be a tie.
  const std::vector<double> source = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1.8p-10 - 0x1p-40,
                                      -1 - 0x1p-11 - 0x1p-40, 0x1p-25 + 0x1p-60, 65520 - 0x1p-30};
  const auto halves = converted<Float16>(DataType::Float64, DataType::Float16, source);
  const uint16_t expected[] = {0x3c01, 0x3c01, 0xbc01, 0x0001, 0x7bff};
  for (size_t index = 0; index < source.size(); ++index) {
    EXPECT_EQ(halves[index].bits, expected[index]) << source[index];
  }
  const std::vector<int64_t> whole = {(int64_t{1} << 40) + (int64_t{1} << 32) + 1,
                                      -(int64_t{1} << 40) - (int64_t{1} << 32) - 1};
  const auto brains = converted<BFloat16>(DataType::Int64, DataType::BFloat16, whole);
  EXPECT_EQ(brains[0].bits, 0x5381);
  EXPECT_EQ(brains[1].bits, 0xd381);
}

TEST(ConvertElements, FloatsAreRoundedToTheNearest) {
  const std::vector<double> source = {1.0009765625, 70000, 0.1};
  const auto halves = converted<Float16>(DataType::Float64, DataType::Float16, source);
  EXPECT_EQ(static_cast<float>(halves[0]), 1.0009765625F);
  EXPECT_EQ(static_cast<float>(halves[1]), kInfinity);
  EXPECT_EQ(static_cast<float>(halves[2]), 0.0999755859375F);
  const std::vector<int64_t> large = {16777217, 9007199254740993};
  EXPECT_THAT(converted<float>(DataType::Int64, DataType::Float32, large),
              ElementsAre(16777216.0F, 9007199254740992.0F));
}

}  // namespace
}  // namespace tessera::ops
