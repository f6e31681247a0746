#include "cli/inputs/random_input.h"

#include <bit>
#include <cmath>
#include <set>

#include "base/matchers_test.h"
#include "tessera/error.h"
#include "tessera/float16.h"

namespace tessera::cli {
namespace {

// Every machine must generate these values. If they change, saved inputs and results become
// useless.
TEST(RandomInput, FirstValuesArePinnedToTheBit) {
  const Tensor floats = random_tensor(DataType::Float32, {4}, 1, "data_0");
  std::vector<uint32_t> bits;
  for (const float value : floats.as<float>()) bits.push_back(std::bit_cast<uint32_t>(value));
  EXPECT_THAT(bits, ElementsAre(1042095902, 3201743134, 1072682174, 3200663505));

  const Tensor doubles = random_tensor(DataType::Float64, {3}, 1, "data_0");
  std::vector<uint64_t> wide_bits;
  for (const double value : doubles.as<double>())
    wide_bits.push_back(std::bit_cast<uint64_t>(value));
  EXPECT_THAT(wide_bits,
              ElementsAre(4594696243198082313, 13824598554653302406U, 4611117123157559828));

  const Tensor integers = random_tensor(DataType::Int64, {8}, 1, "tokens");
  EXPECT_THAT(integers.as<int64_t>(), ElementsAre(3, 8, 3, 0, 8, 4, 9, 4));
  const Tensor bools = random_tensor(DataType::Bool, {8}, 1, "mask");
  EXPECT_THAT(bools.as<uint8_t>(), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(RandomInput, FloatsAreNormal) {
  const Tensor tensor = random_tensor(DataType::Float64, {100, 1000}, 3, "x");
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  int within_one = 0;
  for (const double value : tensor.as<double>()) {
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
    within_one += std::abs(value) < 1 ? 1 : 0;
  }
  const auto count = static_cast<double>(tensor.elements());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(fourths / count, 3, 0.1);
  EXPECT_NEAR(within_one / count, 0.6827, 0.005);
}

TEST(RandomInput, SmallFloatsAreTheRoundedLargeOnes) {
  const Tensor wide = random_tensor(DataType::Float32, {50}, 5, "x");
  const Tensor half = random_tensor(DataType::Float16, {50}, 5, "x");
  const Tensor brain = random_tensor(DataType::BFloat16, {50}, 5, "x");
  for (size_t index = 0; index < 50; ++index) {
    EXPECT_EQ(half.as<Float16>()[index].bits, Float16(wide.as<float>()[index]).bits);
    EXPECT_EQ(brain.as<BFloat16>()[index].bits, BFloat16(wide.as<float>()[index]).bits);
  }
}

TEST(RandomInput, IntegersFillTheirRange) {
  const auto values_of = [](std::optional<int64_t> limit) {
    const Tensor tensor = random_tensor(DataType::Int32, {1000}, 2, "ids", limit);
    return std::set<int32_t>(tensor.as<int32_t>().begin(), tensor.as<int32_t>().end());
  };
  EXPECT_THAT(values_of(std::nullopt), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(values_of(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(values_of(1), ElementsAre(0));
  EXPECT_THAT(values_of(0), ElementsAre(0));
  EXPECT_GT(*values_of(1'000'000'000'000).rbegin(), 1'000'000'000);
  const Tensor narrow = random_tensor(DataType::Int8, {100}, 2, "ids", 1000);
  EXPECT_THAT(narrow.as<int8_t>(), testing::Each(testing::Ge(0)));
}

TEST(RandomInput, BoolsAreFair) {
  const Tensor tensor = random_tensor(DataType::Bool, {10000}, 2, "mask");
  int trues = 0;
  for (const uint8_t value : tensor.as<uint8_t>()) {
    ASSERT_LE(value, 1);
    trues += value;
  }
  EXPECT_NEAR(trues, 5000, 200);
}

TEST(RandomInput, SeedAndNameBothCount) {
  std::set<float> firsts;
  for (const uint64_t seed : {0, 1, 2}) {
    for (const char* name : {"", "x", "y", "x1"}) {
      firsts.insert(random_tensor(DataType::Float32, {1}, seed, name).as<float>()[0]);
    }
  }
  EXPECT_EQ(firsts.size(), 12U);
}

TEST(RandomInput, TakesScalarsAndEmptyShapes) {
  EXPECT_EQ(random_tensor(DataType::Float32, {}, 1, "x").elements(), 1);
  EXPECT_EQ(random_tensor(DataType::Float32, {2, 0}, 1, "x").elements(), 0);
  EXPECT_THROW(random_tensor(DataType::Sequence, {1}, 1, "x"), Error);
}

TEST(RandomInput, DrawsWords) {
  const Tensor words = random_tensor(DataType::String, {100}, 1, "x");
  std::set<std::string> different(words.as<std::string>().begin(), words.as<std::string>().end());
  EXPECT_GT(different.size(), 5U);
  EXPECT_LE(different.size(), 10U);
}

}  // namespace
}  // namespace tessera::cli
