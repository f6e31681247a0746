#include "verify/element_loops.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace tessera::verification {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_elements(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> draw(-3, 3);
  std::vector<float> elements(kElementBlock);
  for (float& element : elements) element = draw(random);
  return elements;
}

TEST(ElementLoops, SeesASingleElementThatDiffersMore) {
  const std::vector<float> wanted = random_elements(1);
  for (const size_t at : {size_t{0}, size_t{7}, size_t{100}, kElementBlock - 1}) {
    std::vector<float> given = wanted;
    const auto may_differ = [&](const std::vector<float>& summed, float limit) {
      return may_differ_more(wanted.data(), given.data(), summed.data(), 0.3F, limit);
    };
    EXPECT_FALSE(may_differ(wanted, 0));
    given[at] += 0.01F;
    EXPECT_TRUE(may_differ(wanted, 1e-3F));
    EXPECT_FALSE(may_differ(wanted, 0.05F));
    std::vector<float> summed = wanted;
    summed[at] = -100;
    EXPECT_FALSE(may_differ(summed, 1e-3F));
    for (const float other : {kInfinity, -kInfinity, kNaN}) {
      given[at] = other;
      EXPECT_TRUE(may_differ(wanted, 1e6F)) << other;
      given[at] = wanted[at];
      summed[at] = other;
      EXPECT_TRUE(may_differ(summed, 1e6F)) << other;
    }
  }
}

TEST(ElementLoops, FindsTheLargestFiniteMagnitude) {
  EXPECT_EQ(largest_finite({}), 0);
  EXPECT_EQ(largest_finite(std::vector<float>{kNaN, -kInfinity}), 0);
  EXPECT_EQ(largest_finite(std::vector<float>{1, -2.5F, kNaN, kInfinity, -0.0F, 2}), 2.5F);
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(largest_finite(std::vector<float>{1, -most}), most);
  EXPECT_EQ(largest_finite(std::vector<float>{1e-42F}), 1e-42F);
}

TEST(ElementLoops, SeesElementsThatAreNotFinite) {
  for (const size_t count : {size_t{1}, size_t{13}, kElementBlock}) {
    std::vector<float> elements(count, -std::numeric_limits<float>::max());
    EXPECT_TRUE(are_finite(elements));
    for (const float other : {kInfinity, -kInfinity, kNaN, -kNaN}) {
      elements[count - 1] = other;
      EXPECT_FALSE(are_finite(elements)) << other;
    }
  }
}

TEST(ElementLoops, CopiesWhereBitsAreEqual) {
  const std::vector<uint16_t> left = {1, 2, 3, 4};
  const std::vector<uint16_t> right = {1, 0, 3, 0};
  const std::vector<uint16_t> source = {10, 20, 30, 40};
  std::vector<uint16_t> target = {5, 6, 7, 8};
  copy_where_equal<uint16_t>(left, right, source, target);
  EXPECT_EQ(target, (std::vector<uint16_t>{10, 6, 30, 8}));
}

TEST(ElementLoops, ClearsTheHighestBitOnly) {
  std::vector<uint16_t> small = {0xFFFF, 0x8000, 0x1234};
  clear_signs<uint16_t>(small);
  EXPECT_EQ(small, (std::vector<uint16_t>{0x7FFF, 0, 0x1234}));
  std::vector<uint64_t> large = {~uint64_t{0}};
  clear_signs<uint64_t>(large);
  EXPECT_EQ(large[0], ~uint64_t{0} >> 1);
}

}  // namespace
}  // namespace tessera::verification
