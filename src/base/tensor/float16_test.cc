#include "base/tensor/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Half>
Half from_bits(uint32_t bits) {
  Half half;
  half.bits = static_cast<uint16_t>(bits);
  return half;
}

template <class Half>
void expect_round_trip() {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto value = static_cast<float>(from_bits<Half>(bits));
    const Half again(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(again))) << bits;
    } else {
      ASSERT_EQ(again.bits, bits);
    }
  }
}

// The midpoint of two neighbours rounds to the even one, and anything beside it to the nearer one.
template <class Half>
void expect_rounding_to_nearest_even(uint32_t largest_finite) {
  for (uint32_t bits = 0; bits < largest_finite; ++bits) {
    const double low = static_cast<float>(from_bits<Half>(bits));
    const double high = static_cast<float>(from_bits<Half>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(Half(middle).bits, bits + bits % 2);
    ASSERT_EQ(Half(-middle).bits, 0x8000U | (bits + bits % 2));
    ASSERT_EQ(Half(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(Half(std::nextafter(middle, kInfinity)).bits, bits + 1);
    // The nearest doubles are no floats.
    const double exact = (low + high) / 2;
    ASSERT_EQ(Half(exact).bits, bits + bits % 2);
    ASSERT_EQ(Half(std::nextafter(exact, 0.0)).bits, bits);
    ASSERT_EQ(Half(std::nextafter(exact, 1e300)).bits, bits + 1);
    ASSERT_EQ(Half(-std::nextafter(exact, 1e300)).bits, 0x8000U | (bits + 1));
  }
}

struct RoundingCase {
  float value;
  uint16_t bits;
};

// Computed with numpy.float16.
const RoundingCase kFloat16Cases[] = {
    {0.0F, 0x0000},         {-0.0F, 0x8000},          {1.0F, 0x3c00},
    {-2.0F, 0xc000},        {0.1F, 0x2e66},           {0x1.555556p-2F, 0x3555},
    {65504.0F, 0x7bff},     {0x1.ffdffep15F, 0x7bff}, {65520.0F, 0x7c00},
    {-65520.0F, 0xfc00},    {1e10F, 0x7c00},          {0x1p-14F, 0x0400},
    {0x1.ffcp-15F, 0x0400}, {0x1p-15F, 0x0200},       {0x1p-24F, 0x0001},
    {0x1p-25F, 0x0000},     {0x1.8p-24F, 0x0002},     {-0x1.4p-23F, 0x8002},
    {1e-10F, 0x0000},       {0x1.002p0F, 0x3c00},     {0x1.006p0F, 0x3c02},
    {0x1.00202p0F, 0x3c01}, {2047.5F, 0x6800},        {2049.0F, 0x6800},
    {2051.0F, 0x6802},      {kInfinity, 0x7c00},      {-kInfinity, 0xfc00},
};

// Computed with ml_dtypes.bfloat16.
const RoundingCase kBFloat16Cases[] = {
    {0.0F, 0x0000},           {1.0F, 0x3f80},         {-2.0F, 0xc000},     {0.1F, 0x3dcd},
    {0x1.555556p-2F, 0x3eab}, {0x1.fep127F, 0x7f7f},  {3.4e38F, 0x7f80},   {0x1.01p0F, 0x3f80},
    {0x1.03p0F, 0x3f82},      {0x1.01001p0F, 0x3f81}, {0x1p-133F, 0x0001}, {0x1p-134F, 0x0000},
    {0x1.8p-133F, 0x0002},    {0x1p-149F, 0x0000},    {kInfinity, 0x7f80}, {-kInfinity, 0xff80},
};

TEST(Float16, EveryValueRoundTrips) { expect_round_trip<Float16>(); }

TEST(Float16, RoundsToNearestEven) { expect_rounding_to_nearest_even<Float16>(0x7bff); }

TEST(Float16, AgreesWithNumpy) {
  for (const RoundingCase& row : kFloat16Cases)
    EXPECT_EQ(Float16(row.value).bits, row.bits) << row.value;
  EXPECT_EQ(static_cast<float>(from_bits<Float16>(0x8001)), -0x1p-24F);
  EXPECT_EQ(static_cast<float>(from_bits<Float16>(0x7c00)), kInfinity);
}

// Integers around the middle of two numbers with `digits` digits: float32 has none of these.
template <class Half, class Integer>
void expect_integers_rounded_once(int digits) {
  for (int bits = 26; bits < std::numeric_limits<Integer>::digits; ++bits) {
    const auto middle = (Integer{1} << bits) + (Integer{1} << (bits - digits));
    const auto power = static_cast<float>(Integer{1} << bits);
    const float next = power * (1 + std::ldexp(1.0F, 1 - digits));
    EXPECT_EQ(Half(middle - 1).bits, Half(power).bits) << bits;
    EXPECT_EQ(Half(middle).bits, Half(power).bits) << bits;
    EXPECT_EQ(Half(middle + 1).bits, Half(next).bits) << bits;
    if constexpr (std::is_signed_v<Integer>) {
      EXPECT_EQ(Half(-middle - 1).bits, Half(-next).bits) << bits;
      EXPECT_EQ(Half(1 - middle).bits, Half(-power).bits) << bits;
    }
  }
}

TEST(Float16, IntegersAreRoundedOnce) {
  expect_integers_rounded_once<BFloat16, int64_t>(8);
  expect_integers_rounded_once<BFloat16, uint64_t>(8);
  expect_integers_rounded_once<BFloat16, int32_t>(8);
  expect_integers_rounded_once<BFloat16, uint32_t>(8);
  EXPECT_EQ(BFloat16(std::numeric_limits<int64_t>::min()).bits, 0xdf00);
  EXPECT_EQ(BFloat16(std::numeric_limits<uint64_t>::max()).bits, 0x5f80);
  EXPECT_EQ(Float16(std::numeric_limits<int64_t>::min()).bits, 0xfc00);
  EXPECT_EQ(Float16(int64_t{65519}).bits, 0x7bff);
  EXPECT_EQ(Float16(uint32_t{65520}).bits, 0x7c00);
}

TEST(Float16, NanStaysNanWhateverItsBits) {
  for (const uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0x7fffffffU}) {
    const auto value = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(static_cast<float>(Float16(value)))) << bits;
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(value)))) << bits;
  }
}

TEST(BFloat16, EveryValueRoundTrips) { expect_round_trip<BFloat16>(); }

TEST(BFloat16, RoundsToNearestEven) { expect_rounding_to_nearest_even<BFloat16>(0x7f7f); }

TEST(BFloat16, AgreesWithMlDtypes) {
  for (const RoundingCase& row : kBFloat16Cases)
    EXPECT_EQ(BFloat16(row.value).bits, row.bits) << row.value;
}

}  // namespace
}  // namespace tessera
