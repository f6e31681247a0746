#include "base/tensor/small_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tessera {
namespace {

using testing::ElementsAre;

constexpr double kSmallInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The table of https://onnx.ai/onnx/technical/float8.html, and that of the OCP's MX formats.
struct FormatCase {
  DataType type;
  double largest;
  double smallest;           // normal
  double smallest_denormal;  // or the smallest number
};

const FormatCase kFormatCases[] = {
    {DataType::Float8E4M3FN, 448, 0x1p-6, 0x1p-9},
    {DataType::Float8E4M3FNUZ, 240, 0x1p-7, 0x1p-10},
    {DataType::Float8E5M2, 57344, 0x1p-14, 0x1p-16},
    {DataType::Float8E5M2FNUZ, 57344, 0x1p-15, 0x1p-17},
    {DataType::Float8E8M0, 0x1p127, 0x1p-127, 0x1p-127},
    {DataType::Float4E2M1, 6, 1, 0.5},
};

double value(DataType type, uint8_t bits) { return double{small_float_values(type)[bits]}; }

double rounded(DataType type, double number, SmallFloatRounding rounding = {}) {
  return value(type, small_float_bits(type, number, rounding));
}

TEST(SmallTypes, FormatsHaveTheirRange) {
  for (const FormatCase& row : kFormatCases) {
    SCOPED_TRACE(name(row.type));
    for (const double number : {row.largest, row.smallest, row.smallest_denormal}) {
      EXPECT_EQ(rounded(row.type, number), number);
      if (row.type == DataType::Float8E8M0) continue;  // without a sign
      EXPECT_EQ(rounded(row.type, -number), -number);
    }
    EXPECT_EQ(rounded(row.type, 2 * row.largest), row.largest);
    EXPECT_EQ(rounded(row.type, kSmallInfinity), row.largest);
    EXPECT_EQ(std::isnan(rounded(row.type, kNan)), row.type != DataType::Float4E2M1);
  }
}

TEST(SmallTypes, EachNumberKeepsItsBits) {
  for (const FormatCase& row : kFormatCases) {
    SCOPED_TRACE(name(row.type));
    for (unsigned bits = 0; bits < 1U << element_bits(row.type); ++bits) {
      const double number = value(row.type, static_cast<uint8_t>(bits));
      if (std::isnan(number)) continue;
      EXPECT_EQ(small_float_bits(row.type, number, {.saturates = false}), bits);
    }
  }
}

// For each two neighbours: a number between them becomes the nearer one, and the middle the even
// one.
TEST(SmallTypes, RoundOnceAndTiesToEven) {
  for (const FormatCase& row : kFormatCases) {
    if (row.type == DataType::Float8E8M0) continue;
    SCOPED_TRACE(name(row.type));
    const uint8_t last = small_float_bits(row.type, row.largest);
    for (uint8_t bits = 0; bits < last; ++bits) {
      const double below = value(row.type, bits);
      const double above = value(row.type, static_cast<uint8_t>(bits + 1));
      const double middle = (below + above) / 2;
      EXPECT_EQ(rounded(row.type, middle), bits % 2 == 0 ? below : above);
      EXPECT_EQ(rounded(row.type, std::nextafter(middle, 0)), below);
      EXPECT_EQ(rounded(row.type, -std::nextafter(middle, kSmallInfinity)), -above);
    }
  }
}

// The tables "saturate" and "not saturate" of https://onnx.ai/onnx/operators/onnx__Cast.html.
TEST(SmallTypes, SpecialValuesAreThoseOfTheStandard) {
  const auto exact = [](DataType type, double number) {
    return rounded(type, number, {.saturates = false});
  };
  for (const DataType type : {DataType::Float8E4M3FN, DataType::Float8E4M3FNUZ,
                              DataType::Float8E5M2, DataType::Float8E5M2FNUZ}) {
    SCOPED_TRACE(name(type));
    const bool has_infinity = type == DataType::Float8E5M2;
    const bool has_negative_zero = type == DataType::Float8E4M3FN || type == DataType::Float8E5M2;
    EXPECT_EQ(std::signbit(rounded(type, -0.0)), has_negative_zero);
    EXPECT_EQ(std::signbit(rounded(type, -1e-9)), has_negative_zero);
    for (const double beyond : {kSmallInfinity, -1e6}) {
      EXPECT_EQ(std::isinf(exact(type, beyond)), has_infinity);
      EXPECT_EQ(std::isnan(exact(type, beyond)), !has_infinity);
    }
    EXPECT_TRUE(std::isnan(exact(type, kNan)));
    EXPECT_EQ(rounded(type, -kSmallInfinity), -rounded(type, kSmallInfinity));
  }
  EXPECT_EQ(exact(DataType::Float8E5M2, -kSmallInfinity), -kSmallInfinity);
  // 464 is as far from 448 as from 480, which would be NaN; 448 is the even one.
  EXPECT_EQ(exact(DataType::Float8E4M3FN, 464), 448);
  EXPECT_EQ(exact(DataType::Float4E2M1, 1e9), 6);
}

struct PowerCase {
  double number;
  double up, down, nearest;  // if it saturates
  double strict;             // nearest, if it does not
};

const PowerCase kPowerCases[] = {
    {1, 1, 1, 1, 1},
    {1.25, 2, 1, 1, 1},
    {1.5, 2, 1, 2, 2},
    {3.5, 4, 2, 4, 4},
    {0x1p-127, 0x1p-127, 0x1p-127, 0x1p-127, 0x1p-127},
    {0, 0x1p-127, 0x1p-127, 0x1p-127, kNan},
    {0x1p-130, 0x1p-127, 0x1p-127, 0x1p-127, kNan},
    {0x1.8p127, 0x1p127, 0x1p127, 0x1p127, kNan},
    {kSmallInfinity, 0x1p127, 0x1p127, 0x1p127, kNan},
    {kNan, kNan, kNan, kNan, kNan},
};

TEST(SmallTypes, PowersOfTwoAreRoundedAsAsked) {
  const auto power = [](double number, SmallFloatRounding rounding) {
    return rounded(DataType::Float8E8M0, number, rounding);
  };
  const auto expect = [](double found, double wanted) {
    EXPECT_TRUE(found == wanted || (std::isnan(found) && std::isnan(wanted))) << found;
  };
  for (const PowerCase& row : kPowerCases) {
    SCOPED_TRACE(row.number);
    expect(power(row.number, {true, PowerRounding::Up}), row.up);
    expect(power(row.number, {true, PowerRounding::Down}), row.down);
    expect(power(row.number, {true, PowerRounding::Nearest}), row.nearest);
    expect(power(row.number, {false, PowerRounding::Nearest}), row.strict);
  }
}

TEST(SmallTypes, IntegersAreTheLowestBits) {
  EXPECT_EQ(small_integer(DataType::Int4, 0xf8), -8);
  EXPECT_EQ(small_integer(DataType::Int4, 0x17), 7);
  EXPECT_EQ(small_integer(DataType::UInt4, 0xff), 15);
  EXPECT_EQ(small_integer(DataType::Int2, 0x02), -2);
  EXPECT_EQ(small_integer(DataType::UInt2, 0xfe), 2);
}

TEST(SmallTypes, FilesPackThem) {
  EXPECT_EQ(packed_bytes(DataType::Int4, 5), 3);
  EXPECT_EQ(packed_bytes(DataType::UInt2, 5), 2);
  EXPECT_EQ(packed_bytes(DataType::Int2, 0), 0);
  EXPECT_EQ(packed_bytes(DataType::Float8E5M2, 5), 5);
  const std::vector<uint8_t> elements = {1, 0xfe, 7, 0xf8, 0xff};  // 1, -2, 7, -8, -1
  std::vector<uint8_t> packed(3);
  pack(DataType::Int4, elements, packed);
  EXPECT_THAT(packed, ElementsAre(0xe1, 0x87, 0x0f));
  std::vector<uint8_t> again(5);
  unpack(DataType::Int4, packed, again);
  EXPECT_EQ(again, elements);
  std::vector<uint8_t> pairs(2);
  pack(DataType::UInt2, std::vector<uint8_t>{3, 0, 1, 2, 1}, pairs);
  EXPECT_THAT(pairs, ElementsAre(0b10010011, 0b01));
}

}  // namespace
}  // namespace tessera
