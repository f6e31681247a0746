#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

const Tensor kFactor = floats({2, 2}, {1, 2, 3, 4});
const Tensor kOther = floats({2, 2}, {1, 10, 0, 1});

TEST(FusedMatMul, TransposesAndScales) {
  const auto run = [](const Attributes& given) {
    return values(run_contrib("FusedMatMul", given, {kFactor, kOther})[0]);
  };
  EXPECT_THAT(run({}), ElementsAre(1, 12, 3, 34));
  EXPECT_THAT(run(attributes_of({{"transA", 1}})), ElementsAre(1, 13, 2, 24));
  EXPECT_THAT(run(attributes_of({{"transB", 1}})), ElementsAre(21, 2, 43, 4));
  EXPECT_THAT(run(attributes_of({{"alpha", 0.5F}})), ElementsAre(0.5F, 6, 1.5F, 17));
  EXPECT_THAT(
      values(run_contrib("TransposeMatMul", attributes_of({{"transA", 1}}), {kFactor, kOther})[0]),
      ElementsAre(1, 13, 2, 24));
}

TEST(FusedMatMul, TakesVectorsAsTheyAre) {
  const auto given = attributes_of({{"transA", 1}, {"transB", 1}});
  const Tensor vector = floats({1, 10});
  EXPECT_THAT(values(run_contrib("FusedMatMul", given, {vector, kFactor})[0]), ElementsAre(21, 43));
  EXPECT_THAT(values(run_contrib("FusedMatMul", given, {kFactor, vector})[0]), ElementsAre(31, 42));
  const auto product = run_contrib("FusedMatMul", given, {vector, vector});
  EXPECT_THAT(product[0].dims(), IsEmpty());
  EXPECT_THAT(values(product[0]), ElementsAre(101));
}

// The first axis goes behind the batch axes: [2, 3, 1] is 3 matrices [2, 1].
TEST(FusedMatMul, MovesTheFirstAxis) {
  const Tensor left = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Tensor right = floats({3, 1, 1}, {1, 10, 100});
  const auto moved = run_contrib("FusedMatMul", attributes_of({{"transBatchA", 1}}), {left, right});
  EXPECT_THAT(moved[0].dims(), ElementsAre(3, 2, 1));
  EXPECT_THAT(values(moved[0]), ElementsAre(1, 4, 20, 50, 300, 600));
}

TEST(FusedMatMul, BroadcastsBatches) {
  const auto product =
      run_contrib("FusedMatMul", {}, {floats({2, 1, 1}, {1, 2}), floats({1, 2}, {3, 4})});
  EXPECT_THAT(product[0].dims(), ElementsAre(2, 1, 2));
  EXPECT_THAT(values(product[0]), ElementsAre(3, 4, 6, 8));
}

TEST(FusedMatMul, Activates) {
  const auto given = attributes_of({{"activation", "LeakyRelu"}, {"activation_alpha", 0.5F}});
  EXPECT_THAT(values(run_contrib("FusedMatMulActivation", given,
                                 {floats({1, 1}, {-2}), floats({1, 2}, {3, -3})})[0]),
              ElementsAre(-3, 6));
}

TEST(FusedMatMul, RefusesWrongShapes) {
  const auto refusal_of = [](const Attributes& given, const Tensor& left, const Tensor& right) {
    return contrib_refusal("FusedMatMul", given, {left, right});
  };
  EXPECT_THAT(refusal_of({}, kFactor, floats({1, 2}, {1, 2})), HasSubstr("as many columns"));
  EXPECT_THAT(refusal_of({}, floats({}, {1}), kFactor), HasSubstr("found a scalar"));
  EXPECT_THAT(refusal_of({}, floats({2, 1, 1}, {1, 2}), floats({3, 1, 1}, {1, 2, 3})),
              HasSubstr("batches that broadcast"));
  EXPECT_THAT(refusal_of(attributes_of({{"transBatchA", 1}}), kFactor, kFactor),
              HasSubstr("one rank of at least 3"));
}

TEST(FusedMatMul, KeepsUnknownSizes) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(contrib_type(
                "FusedMatMul", attributes_of({{"transA", 1}}),
                {typed(DataType::Float32, Shape{n, 3, 4}), typed(DataType::Float32, Shape{3, 5})}),
            "float32 nx4x5");
}

}  // namespace
}  // namespace tessera::ops
