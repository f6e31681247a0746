#include "ops/shape_arithmetic.h"

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const Dim kN = Dim::symbol("N");

TEST(ShapeArithmetic, WhatWouldWrapAroundIsUnknown) {
  EXPECT_EQ(add_elements(kLargest, 1), std::nullopt);
  EXPECT_EQ(subtract_elements(kSmallest, 1), std::nullopt);
  EXPECT_EQ(subtract_elements(kN, kSmallest), std::nullopt);
  EXPECT_EQ(multiply_elements(kLargest, 2), std::nullopt);
  EXPECT_EQ(divide_elements(kSmallest, -1), std::nullopt);
  EXPECT_EQ(divide_elements(kN, 0), std::nullopt);
}

TEST(ShapeArithmetic, QuotientsAreTruncated) {
  EXPECT_EQ(divide_elements(-7, 2), Dim(-3));
  EXPECT_EQ(modulo_elements(-7, 4), Dim(1));
  EXPECT_EQ(modulo_elements(7, -4), Dim(-1));
  EXPECT_EQ(modulo_elements(-8, 4), Dim(0));
  EXPECT_EQ(remainder_elements(-7, 4), Dim(-3));
  EXPECT_EQ(remainder_elements(7, -4), Dim(3));
  EXPECT_EQ(modulo_elements(kSmallest, -1), Dim(0));
  EXPECT_EQ(remainder_elements(kN, 0), std::nullopt);
  EXPECT_EQ(modulo_elements(kN, 4), modulo_elements(kN, 4));
  EXPECT_NE(modulo_elements(kN, 4), remainder_elements(kN, 4));
  EXPECT_EQ(divide_elements(kN, 2), floor_divide(kN, 2));
  // The dividend may be negative, where truncation and floor differ.
  EXPECT_NE(divide_elements(subtract(kN, 9), 2), floor_divide(subtract(kN, 9), 2));
}

TEST(ShapeArithmetic, EqualityIsAnsweredWhereItCanBe) {
  EXPECT_EQ(equal_elements(kN, kN), Dim(1));
  EXPECT_EQ(equal_elements(kN, -1), Dim(0));
  EXPECT_EQ(equal_elements(3, 4), Dim(0));
  EXPECT_FALSE(equal_elements(kN, 3).is_known());
  EXPECT_EQ(equal_elements(kN, 3), equal_elements(3, kN));
  EXPECT_FALSE(equal_elements(subtract(kN, 9), -1).is_known());
}

TEST(ShapeArithmetic, SmallerAndLargerDoNotCareForOrder) {
  EXPECT_EQ(smaller_element(3, 4), Dim(3));
  EXPECT_EQ(larger_element(3, 4), Dim(4));
  EXPECT_EQ(larger_element(kN, 4), larger_element(4, kN));
  EXPECT_NE(larger_element(kN, 4), smaller_element(kN, 4));
}

TEST(ShapeArithmetic, ElementsThatDoNotFitTheirTypeAreNotCarried) {
  InferInput input = typed(DataType::Int32, Shape{1});
  input.elements = std::vector<Dim>{2147483647};
  EXPECT_EQ(infer_op("Add", 14, {}, {input, input})[0].elements, std::nullopt);
  EXPECT_THAT(*infer_op("Sub", 14, {}, {input, input})[0].elements, ElementsAre(Dim(0)));
}

TEST(ShapeArithmetic, LargeTensorsAreNotCarried) {
  const InferInput column = with_elements({64, 1}, std::vector<Dim>(64, 1));
  const InferInput row = with_elements({64}, std::vector<Dim>(64, 1));
  EXPECT_EQ(infer_op("Add", 14, {}, {column, row})[0].elements, std::nullopt);
  EXPECT_EQ(infer_op("Add", 14, {}, {row, row})[0].elements->size(), 64);
}

}  // namespace
}  // namespace tessera::ops
