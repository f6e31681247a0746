#include "verify/special_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor/tensors_test.h"
#include "ops/all_ops_test.h"
#include "tessera/float16.h"
#include "verify/op_case.h"
#include "verify/random_tensor.h"

namespace tessera::verification {
namespace {

// The verdict on a single element `found`.
std::string lost(float plain, float special, float found, bool may_spread = false) {
  const Tensor before = floats({plain});
  const Tensor after = floats({special});
  return explain_lost_special({before, {}, after}, floats({found}), may_spread, 0);
}

// Same as lost(), for a single elementwise op.
std::string lost_alone(float special, float found) {
  const Tensor before = floats({1});
  const Tensor after = floats({special});
  return explain_lost_special({before, {}, after, SpecialValues::All}, floats({found}), false, 0);
}

TEST(WithSpecialValues, HasEveryKindAndLeavesMost) {
  const Tensor plain = random_tensor(DataType::Float32, {100}, false, 1);
  const Tensor special = with_special_values(plain, "x", SpecialValues::Infinities);
  int nans = 0;
  int infinities = 0;
  int same = 0;
  for (size_t index = 0; index < 100; ++index) {
    const float element = special.as<float>()[index];
    if (std::isnan(element)) ++nans;
    if (std::isinf(element)) ++infinities;
    if (element == plain.as<float>()[index]) ++same;
  }
  EXPECT_EQ(nans, 2);
  EXPECT_EQ(infinities, 2);
  EXPECT_EQ(same, 96);
}

TEST(WithSpecialValues, TakesEveryFloatingTypeAndAnySize) {
  for (const DataType type :
       {DataType::Float16, DataType::BFloat16, DataType::Float32, DataType::Float64}) {
    for (const int64_t count : {0, 1, 2, 15, 16, 17}) {
      const Tensor plain = random_tensor(type, {count}, false, 1);
      EXPECT_EQ(with_special_values(plain, "x", SpecialValues::Infinities).elements(), count);
    }
  }
  EXPECT_TRUE(
      with_special_values(random_tensor(DataType::Int32, {4}, false, 1), "x", SpecialValues::All)
          .is_empty());
}

TEST(WithSpecialValues, HasThemElsewhereInAnotherInput) {
  const Tensor plain = random_tensor(DataType::Float32, {100}, false, 1);
  const auto text = [&](const char* name) {
    const Tensor special = with_special_values(plain, name, SpecialValues::All);
    return std::string(static_cast<const char*>(special.data()), 400);
  };
  EXPECT_EQ(text("a"), text("a"));
  EXPECT_NE(text("a"), text("b"));
}

TEST(ExplainLostSpecial, WantsNaNForNaNAndNothingFiniteForAnInfinity) {
  EXPECT_EQ(lost(1, NAN, NAN), "");
  EXPECT_EQ(lost(1, NAN, -INFINITY), "element 0: expected nan, found -inf");
  EXPECT_EQ(lost(1, INFINITY, -INFINITY), "");
  EXPECT_EQ(lost(1, INFINITY, NAN), "");
  EXPECT_EQ(lost(1, NAN, 0), "element 0: expected nan, found 0");
  EXPECT_EQ(lost(1, INFINITY, 3), "element 0: expected inf, found 3");
  EXPECT_EQ(lost(1, NAN, 0, true), "element 0: expected nan, found 0");
}

TEST(ExplainLostSpecial, WantsTheRestAsItIs) {
  EXPECT_EQ(lost(1, 1, 1.00001F), "");
  EXPECT_EQ(lost(1, 1, NAN), "element 0: expected 1, found nan");
  EXPECT_EQ(lost(1, 1, NAN, true), "");
  // It depends on a special value but is finite, so its value is not judged.
  EXPECT_EQ(lost(1, 0, NAN), "");
}

TEST(ExplainLostSpecial, WantsWhatOneElementwiseOpGives) {
  EXPECT_EQ(lost_alone(0, 0), "");
  EXPECT_EQ(lost_alone(3e38F, 3.00001e38F), "");
  EXPECT_EQ(lost_alone(NAN, NAN), "");
  EXPECT_EQ(lost_alone(NAN, INFINITY), "element 0: expected nan, found inf");
  EXPECT_EQ(lost_alone(0, NAN), "element 0: expected 0, found nan");
  EXPECT_EQ(lost_alone(3e38F, INFINITY), "element 0: expected 3.00000001e+38, found inf");
  EXPECT_EQ(lost_alone(-92, -88), "element 0: expected -92, found -88");
}

TEST(SpecialValuesFor, AreAllForOneElementwiseOpAlone) {
  const auto kinds = [&](const char* text) {
    return special_values_for(read_op_case(text, all_ops(), 1).graph, all_ops());
  };
  EXPECT_EQ(kinds("Relu(3x5)"), SpecialValues::All);
  EXPECT_EQ(kinds("Relu(3x5); Exp(@)"), SpecialValues::Infinities);
  EXPECT_EQ(kinds("Softmax(3x5)"), SpecialValues::Infinities);
  EXPECT_EQ(kinds("MatMul(3x5, #5x7); Relu(@)"), SpecialValues::NaN);
}

TEST(ExplainLostSpecial, WantsEqualBools) {
  const std::vector<uint8_t> no = {0};
  const std::vector<uint8_t> yes = {1};
  const Tensor plain = Tensor::copy_of(DataType::Bool, {1}, no.data(), 1);
  const Tensor special = Tensor::copy_of(DataType::Bool, {1}, yes.data(), 1);
  EXPECT_EQ(explain_lost_special({plain, {}, special}, special, false, 0), "");
  EXPECT_NE(explain_lost_special({plain, {}, special}, plain, false, 0), "");
}

}  // namespace
}  // namespace tessera::verification
