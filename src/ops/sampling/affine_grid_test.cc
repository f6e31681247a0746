#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

const Tensor kIdentity = floats({1, 2, 3}, {1, 0, 0, 0, 1, 0});

std::vector<float> grid_of(const Tensor& matrices, const std::vector<int64_t>& size,
                           int64_t aligns) {
  return values(run_op("AffineGrid", 20, attributes_of({{"align_corners", aligns}}),
                       {matrices, ints(size)})[0]);
}

TEST(AffineGrid, ListsPositionsFromTheInnermostAxisOn) {
  // Pairs (x, y) of 2 rows and 3 columns.
  EXPECT_THAT(grid_of(kIdentity, {1, 1, 2, 3}, 1),
              ElementsAre(-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1));
  EXPECT_THAT(grid_of(kIdentity, {1, 1, 1, 4}, 0),
              ElementsAre(-0.75F, 0, -0.25F, 0, 0.25F, 0, 0.75F, 0));
}

TEST(AffineGrid, TransformsPositions) {
  // x' = 2 x + 3 y + 4, y' = 5 x + 6 y + 7, at (-1, -1) and (1, -1).
  const Tensor matrix = floats({1, 2, 3}, {2, 3, 4, 5, 6, 7});
  EXPECT_THAT(grid_of(matrix, {1, 8, 1, 2}, 1), ElementsAre(-1, -4, 3, 6));
  // Of each batch item by its own matrix.
  const Tensor matrices = floats({2, 2, 3}, {0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4});
  EXPECT_THAT(grid_of(matrices, {2, 1, 1, 1}, 0), ElementsAre(1, 2, 3, 4));
}

TEST(AffineGrid, HasThreeAxes) {
  // (x, y, z) becomes (z + 10, x, y).
  const Tensor matrix = floats({1, 3, 4}, {0, 0, 1, 10, 1, 0, 0, 0, 0, 1, 0, 0});
  EXPECT_THAT(grid_of(matrix, {1, 1, 2, 1, 2}, 1),
              ElementsAre(9, -1, -1, 9, 1, -1, 11, -1, -1, 11, 1, -1));
  EXPECT_EQ(run_op("AffineGrid", 20, {}, {matrix, ints({1, 1, 2, 3, 4})})[0].dims(),
            (std::vector<int64_t>{1, 2, 3, 4, 3}));
}

TEST(AffineGrid, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const Tensor found =
        run_op("AffineGrid", 20, {}, {cast_onnx(kIdentity, type), ints({1, 1, 1, 2})})[0];
    EXPECT_THAT(as_floats(found), ElementsAre(-0.5F, 0, 0.5F, 0));
  }
}

TEST(AffineGrid, InfersSizesAsFarAsTheyAreKnown) {
  const auto inferred = infer_op("AffineGrid", 20, {},
                                 {typed(DataType::Float32, Shape{Dim::symbol("n"), 2, 3}),
                                  followed({4, 3, Dim::symbol("h"), 5})});
  EXPECT_EQ(shape_text(inferred), "float32 4xhx5x2");
  const auto of_unknown =
      infer_op("AffineGrid", 20, {}, {typed(DataType::Float32, std::nullopt), unknown_list(5)});
  ASSERT_EQ(of_unknown[0].type.shape->size(), 5U);
  EXPECT_EQ(of_unknown[0].type.shape->back(), Dim(3));
  const auto of_matrices =
      infer_op("AffineGrid", 20, {},
               {typed(DataType::Float32, Shape{7, 2, 3}), typed(DataType::Int64, std::nullopt)});
  EXPECT_EQ((*of_matrices[0].type.shape)[0], Dim(7));
}

TEST(AffineGrid, TakesEmptySizes) {
  EXPECT_EQ(run_op("AffineGrid", 20, {}, {kIdentity, ints({1, 1, 0, 3})})[0].elements(), 0);
}

TEST(AffineGrid, RefusesWrongModels) {
  const auto refused = [](const Tensor& matrices, const std::vector<int64_t>& size) {
    return refusal("AffineGrid", 20, {}, {matrices, ints(size)});
  };
  EXPECT_THAT(refused(kIdentity, {1, 1, 2}), HasSubstr("expected 4 numbers"));
  EXPECT_THAT(refused(kIdentity, {1, 1, 2, -1}), HasSubstr("at least 0, found 1x1x2x-1"));
  EXPECT_THAT(refused(kIdentity, {2, 1, 2, 2}), HasSubstr("for each batch item"));
  EXPECT_THAT(refused(kIdentity, {1, 1, 2, 2, 2}), HasSubstr("found 1x2x3"));
  EXPECT_THAT(refused(floats({2, 3}, {1, 0, 0, 0, 1, 0}), {1, 1, 2, 2}), HasSubstr("found 2x3"));
}

}  // namespace
}  // namespace tessera::ops
