#include "graph/dim.h"

#include <limits>

#include "base/errors/error_test.h"

namespace tessera {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

const Dim kBatch = Dim::symbol("batch");
const Dim kWidth = Dim::symbol("width");

struct Case {
  Dim found;
  const char* expected;
};

TEST(Dim, ArithmeticIsExactOrCanonical) {
  const Case kCases[] = {
      {add(2, 3), "5"},
      {add(kBatch, 0), "batch"},
      {add(0, kBatch), "batch"},
      {add(3, kBatch), "(batch+3)"},
      {subtract(2, 5), "-3"},
      {subtract(kBatch, kBatch), "0"},
      {subtract(kBatch, 3), "(batch+-3)"},
      {subtract(3, kBatch), "(3-batch)"},
      {multiply(4, 5), "20"},
      {multiply(kBatch, 0), "0"},
      {multiply(1, kBatch), "batch"},
      {multiply(4, kBatch), "(batch*4)"},
      {floor_divide(7, 2), "3"},
      {floor_divide(-7, 2), "-4"},
      {floor_divide(7, -2), "-4"},
      {floor_divide(-6, 2), "-3"},
      {floor_divide(kBatch, 1), "batch"},
      {floor_divide(kBatch, kBatch), "1"},
      {floor_divide(kBatch, 2), "(batch/2)"},
      {ceil_divide(7, 2), "4"},
      {ceil_divide(-7, 2), "-3"},
      {ceil_divide(8, 2), "4"},
      {expression("max", {kBatch, 4}), "max(batch,4)"},
  };
  for (const Case& row : kCases) EXPECT_EQ(row.found.text(), row.expected);
}

TEST(Dim, TheSameStepsGiveTheSameSymbol) {
  EXPECT_EQ(add(kBatch, kWidth), add(kWidth, kBatch));
  EXPECT_EQ(multiply(kBatch, kWidth), multiply(kWidth, kBatch));
  EXPECT_NE(floor_divide(kBatch, kWidth), floor_divide(kWidth, kBatch));
  EXPECT_NE(kBatch, Dim(0));
  EXPECT_NE(expression("max", {kBatch, 4}), expression("max", {kBatch, 5}));
}

TEST(Dim, LongExpressionsStayShortAndDistinct) {
  const auto grow = [](const Dim& seed) {
    Dim dim = seed;
    for (int step = 2; step < 200; ++step) dim = floor_divide(add(dim, step), 2);
    return dim;
  };
  EXPECT_LE(grow(kBatch).symbol().size(), 80U);
  EXPECT_EQ(grow(kBatch), grow(kBatch));
  EXPECT_NE(grow(kBatch), grow(kWidth));
}

TEST(Dim, WhatExceeds64BitsIsAnError) {
  EXPECT_THROW(add(kMax, 1), Error);
  EXPECT_THROW(add(kMin, -1), Error);
  EXPECT_THROW(subtract(0, kMin), Error);
  EXPECT_THROW(subtract(kBatch, kMin), Error);
  EXPECT_THROW(multiply(kMax, 2), Error);
  EXPECT_THROW(floor_divide(kMin, -1), Error);
  EXPECT_THROW(floor_divide(kBatch, 0), Error);
  EXPECT_THROW(ceil_divide(4, 0), Error);
  EXPECT_EQ(error_of([&] { multiply(kMax, 2); }),
            "InvalidModel: dimension 9223372036854775807*2: the result exceeds 64 bits");
}

TEST(Dim, ShapesAreKnownWhenEachDimensionIs) {
  EXPECT_EQ(text(Shape{1, 3, kBatch}), "1x3xbatch");
  EXPECT_EQ(text(Shape{}), "scalar");
  EXPECT_TRUE(is_known(Shape{}));
  EXPECT_FALSE(is_known(Shape{1, kBatch}));
  EXPECT_EQ(dims_from(shape_from({2, 0, 5})), (std::vector<int64_t>{2, 0, 5}));
}

}  // namespace
}  // namespace tessera
