#include "verify/compare_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor/tensors_test.h"
#include "ops/all_ops_test.h"
#include "tessera/float16.h"
#include "verify/op_case.h"

namespace tessera::verification {
namespace {

TEST(ExplainDifference, ForgivesWhatRoundingMakes) {
  EXPECT_EQ(explain_difference(floats({1, -2}), Tensor(), floats({1.00002F, -2})), "");
  // Terms of a hundred cancelled to almost nothing, so the difference is rounding error.
  EXPECT_EQ(explain_difference(floats({0.001F}), floats({100}), floats({0.002F})), "");
}

TEST(ExplainDifference, NamesTheWorstElement) {
  EXPECT_EQ(explain_difference(floats({1, 2, 4}), Tensor(), floats({1.01F, 2, 5})),
            "element 2: expected 4, found 5");
  EXPECT_NE(explain_difference(floats({0.001F}), Tensor(), floats({0.002F})), "");
  // An infinite magnitude justifies no finite error.
  EXPECT_NE(explain_difference(floats({1}), floats({INFINITY}), floats({2})), "");
}

TEST(ExplainDifference, ComparesWhatIsNoNumber) {
  EXPECT_EQ(explain_difference(floats({NAN, INFINITY}), Tensor(), floats({NAN, INFINITY})), "");
  EXPECT_NE(explain_difference(floats({1}), Tensor(), floats({NAN})), "");
  EXPECT_NE(explain_difference(floats({NAN}), Tensor(), floats({1})), "");
  EXPECT_NE(explain_difference(floats({INFINITY}), Tensor(), floats({-INFINITY})), "");
  EXPECT_EQ(explain_difference(floats({NAN, INFINITY}), Tensor(), floats({INFINITY, NAN})), "");
  // Also if an element with a small error precedes it.
  EXPECT_NE(explain_difference(floats({1, INFINITY}), Tensor(), floats({1.00001F, 5})), "");
  EXPECT_NE(explain_difference(floats({1, INFINITY}), Tensor(), floats({1.00001F, -INFINITY})), "");
  EXPECT_NE(explain_difference(floats({1, 5}), Tensor(), floats({1.00001F, INFINITY})), "");
}

TEST(ExplainDifference, ForgivesSumsThatOverflowInAnotherOrder) {
  const Tensor overflown = floats({INFINITY, INFINITY, INFINITY});
  EXPECT_EQ(explain_difference(floats({INFINITY, 0, 1}), overflown, floats({NAN, -INFINITY, NAN})),
            "");
  EXPECT_EQ(explain_difference(floats({INFINITY}), floats({INFINITY}), floats({-INFINITY})), "");
  // An infinity that is lost is an error.
  EXPECT_NE(explain_difference(floats({INFINITY}), floats({INFINITY}), floats({1})), "");
}

TEST(ExplainDifference, WantsEqualWholeNumbersAndShapes) {
  const std::vector<int32_t> ones = {1, 1};
  const std::vector<int32_t> others = {1, 2};
  const Tensor expected = Tensor::from<int32_t>(DataType::Int32, {2}, ones);
  EXPECT_EQ(explain_difference(expected, Tensor(), expected), "");
  EXPECT_NE(
      explain_difference(expected, Tensor(), Tensor::from<int32_t>(DataType::Int32, {2}, others)),
      "");
  EXPECT_EQ(explain_difference(floats({1}), Tensor(), floats({1, 1})), "expected 1, found 2");
}

TEST(MagnitudeOf, ClearsTheSignOfEachType) {
  const std::vector<Float16> halves = {Float16(-1.0F), Float16(2.0F)};
  const Tensor half =
      magnitude_of(Tensor::from<Float16>(DataType::Float16, {2}, std::span(halves)));
  EXPECT_EQ(static_cast<float>(half.as<Float16>()[0]), 1.0F);
  EXPECT_EQ(static_cast<float>(half.as<Float16>()[1]), 2.0F);
  const std::vector<BFloat16> brains = {BFloat16(-3.0F)};
  const Tensor brain =
      magnitude_of(Tensor::from<BFloat16>(DataType::BFloat16, {1}, std::span(brains)));
  EXPECT_EQ(static_cast<float>(brain.as<BFloat16>()[0]), 3.0F);
  EXPECT_EQ(magnitude_of(floats({-4})).as<float>()[0], 4.0F);
}

TEST(ExpectedValues, KnowTheMagnitudeOfSums) {
  ThreadPool pool(1);
  const OpCase op_case = read_op_case("MatMul(1x64, #64x1)", all_ops(), 1);
  const ExpectedValues expected = expected_values(op_case, all_ops(), pool);
  const auto output = static_cast<size_t>(op_case.graph.outputs[0].index);
  EXPECT_GT(expected.magnitudes[output].as<float>()[0],
            2 * std::fabs(expected.values[output].as<float>()[0]));
}

TEST(ExpectedValues, AreThereForTheWholeTable) {
  ThreadPool pool(1);
  for (const char* text : case_table()) {
    EXPECT_NO_THROW(expected_values(read_op_case(text, all_ops(), 1), all_ops(), pool)) << text;
  }
}

}  // namespace
}  // namespace tessera::verification
