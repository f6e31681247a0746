#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<float> determinants(const Tensor& matrices) {
  return values(run_op("Det", 11, {}, {matrices})[0]);
}

TEST(Det, IsOneNumberForEachMatrix) {
  const Tensor matrix = run_op("Det", 22, {}, {floats({2, 2}, {1, 2, 3, 4})})[0];
  EXPECT_EQ(matrix.dims(), std::vector<int64_t>{});
  EXPECT_THAT(values(matrix), ElementsAre(FloatNear(-2, 1e-6F)));
  const Tensor batch = floats({3, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1});
  EXPECT_THAT(determinants(batch),
              ElementsAre(FloatNear(-2, 1e-6F), FloatNear(-3, 1e-6F), FloatNear(-8, 1e-6F)));
}

TEST(Det, ExchangesRowsAndKnowsTheEmptyMatrix) {
  EXPECT_THAT(determinants(floats({3, 3}, {0, 2, 0, 0, 0, 3, 4, 0, 0})), ElementsAre(24));
  EXPECT_THAT(determinants(floats({2, 2}, {0, 1, 1, 0})), ElementsAre(-1));
  EXPECT_THAT(determinants(floats({2, 2}, {1, 2, 2, 4})), ElementsAre(0));
  EXPECT_THAT(determinants(floats({2, 0, 0}, {})), ElementsAre(1, 1));
  EXPECT_THAT(determinants(floats({0, 2, 2}, {})), IsEmpty());
}

TEST(Det, KeepsNanAndDoesNotOverflowBetween) {
  EXPECT_TRUE(std::isnan(determinants(floats({2, 2}, {kNan, 1, 1, 0}))[0]));
  EXPECT_TRUE(std::isnan(determinants(floats({2, 2}, {0, 1, kNan, 1}))[0]));
  std::vector<double> diagonal(16, 0);
  diagonal[0] = diagonal[5] = 1e200;
  diagonal[10] = diagonal[15] = 1e-200;
  const Tensor matrix = Tensor::from<double>(DataType::Float64, {4, 4}, diagonal);
  EXPECT_NEAR(run_op("Det", 11, {}, {matrix})[0].as<double>()[0], 1, 1e-12);
}

TEST(Det, RefusesOtherMatrices) {
  EXPECT_THAT(refusal("Det", 11, {}, {floats({1, 2}, {1, 2})}), HasSubstr("found shape 1x2"));
  EXPECT_THAT(refusal("Det", 11, {}, {floats({2}, {1, 2})}), HasSubstr("found shape 2"));
  const Dim size = Dim::symbol("size");
  const auto open = infer_op("Det", 11, {}, {typed(DataType::Float32, Shape{3, size, size})});
  EXPECT_EQ(open[0].type.shape, Shape{3});
}

// --- Inverse of com.microsoft --------------------------------------------------------------------

std::vector<float> inverse_of(const Tensor& matrices) {
  const Node node = make_node(all_ops(), "Inverse", 1, {}, {true}, 1, "com.microsoft");
  ThreadPool pool(2);
  return values(evaluate(all_ops().of(node), node, std::vector<Tensor>{matrices}, pool)[0]);
}

TEST(Inverse, OfEachMatrixIsTheInverse) {
  const Tensor batch = floats({2, 2, 2}, {1, 2, 3, 4, 0, 2, 4, 0});
  const std::vector<float> expected = {-2, 1, 1.5F, -0.5F, 0, 0.25F, 0.5F, 0};
  EXPECT_THAT(inverse_of(batch), Pointwise(FloatNear(1e-6F), expected));
}

TEST(Inverse, OfASingularMatrixIsNotFinite) {
  for (const float value : inverse_of(floats({2, 2}, {1, 1, 1, 1}))) {
    EXPECT_FALSE(std::isfinite(value));
  }
  EXPECT_TRUE(thrown_by([] { inverse_of(floats({1, 2}, {1, 2})); }));
}

}  // namespace
}  // namespace tessera::ops
