#include <cmath>

#include "ops/float_types_test.h"
#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

// A line of 4 elements; a test gives positions along it as indices.
const Tensor kLine = floats({1, 1, 4}, {10, 20, 40, 80});

// Positions of elements of kLine as coordinates of a grid without aligned corners.
Tensor line_grid(const std::vector<float>& positions) {
  std::vector<float> coordinates;
  for (const float position : positions) coordinates.push_back((2 * position + 1) / 4 - 1);
  return floats({1, static_cast<int64_t>(positions.size()), 1}, coordinates);
}

Attributes sampling(const std::string& mode, const std::string& padding, int64_t aligns = 0) {
  return attributes_of({{"mode", mode}, {"padding_mode", padding}, {"align_corners", aligns}});
}

std::vector<float> along_line(const std::string& mode, const std::string& padding,
                              const std::vector<float>& positions) {
  return values(
      run_op("GridSample", 22, sampling(mode, padding), {kLine, line_grid(positions)})[0]);
}

TEST(GridSample, InterpolatesBetweenElements) {
  EXPECT_THAT(along_line("linear", "zeros", {0, 0.5F, 2.25F, 3}), ElementsAre(10, 15, 50, 80));
  // Weights of the cubic kernel halfway: -3/32, 19/32, 19/32, -3/32.
  EXPECT_THAT(along_line("cubic", "zeros", {1, 1.5F}), ElementsAre(20, (19 * 60 - 3 * 90) / 32.0F));
}

TEST(GridSample, RoundsTiesToTheEvenIndex) {
  EXPECT_THAT(along_line("nearest", "zeros", {0.25F, 0.5F, 1.5F, 2.5F, 2.75F}),
              ElementsAre(10, 10, 40, 40, 80));
}

TEST(GridSample, PadsWithZerosBordersAndReflections) {
  const std::vector<float> outside = {-0.25F, -1, -9, 3.75F, 5};
  EXPECT_THAT(along_line("linear", "zeros", outside), ElementsAre(7.5F, 0, 0, 20, 0));
  EXPECT_THAT(along_line("linear", "border", outside), ElementsAre(10, 10, 10, 80, 80));
  // The borders are at -0.5 and 3.5: -1 becomes 0, -9 becomes 8, -1 and 0; 5 becomes 2.
  EXPECT_THAT(along_line("linear", "reflection", outside), ElementsAre(10, 10, 10, 80, 40));
  EXPECT_THAT(along_line("nearest", "zeros", {-1, 4, 3}), ElementsAre(0, 0, 80));
  EXPECT_THAT(along_line("nearest", "border", {-7, 9}), ElementsAre(10, 80));
  EXPECT_THAT(along_line("nearest", "reflection", {-2, 4, 5}), ElementsAre(20, 80, 40));
  // Taps 1, 2, 3 and 4.
  EXPECT_THAT(along_line("cubic", "zeros", {2.5F}), ElementsAre((19 * 120 - 3 * 20) / 32.0F));
  EXPECT_THAT(along_line("cubic", "border", {2.5F}), ElementsAre((19 * 120 - 3 * 100) / 32.0F));
  // Between the border and the next position, an element inside still has a weight.
  EXPECT_THAT(along_line("cubic", "border", {-0.5F, -1, -9}),
              ElementsAre((35 * 10 - 3 * 20) / 32.0F, 10, 10));
}

TEST(GridSample, AlignsCorners) {
  const Tensor grid = floats({1, 5, 1}, {-1, -0.5F, 0, 1, 5.0F / 3});
  EXPECT_THAT(
      values(run_op("GridSample", 20, sampling("linear", "reflection", 1), {kLine, grid})[0]),
      Pointwise(FloatNear(1e-4F), std::vector<float>{10, 17.5F, 30, 80, 40}));
  // One element has no extent to reflect in.
  const Tensor alone = floats({1, 1, 1}, {7});
  for (const char* padding : {"border", "reflection"}) {
    EXPECT_THAT(values(run_op("GridSample", 20, sampling("linear", padding, 1), {alone, grid})[0]),
                testing::Each(7));
  }
}

TEST(GridSample, ListsCoordinatesFromTheInnermostAxisOn) {
  // Element (y, x) is 10 y + x; x comes first in the grid.
  const Tensor plane = floats({1, 1, 2, 3}, {0, 1, 2, 10, 11, 12});
  const Tensor grid = floats({1, 1, 2, 2}, {1, -1, 0, 1});
  EXPECT_THAT(values(run_op("GridSample", 16, sampling("bilinear", "zeros", 1), {plane, grid})[0]),
              ElementsAre(2, 11));
  const Tensor cube = floats({1, 1, 2, 2, 2}, {0, 1, 10, 11, 100, 101, 110, 111});
  const Tensor places = floats({1, 1, 1, 2, 3}, {1, -1, -1, -1, 1, 0});
  EXPECT_THAT(values(run_op("GridSample", 20, sampling("linear", "zeros", 1), {cube, places})[0]),
              ElementsAre(1, 60));
  EXPECT_THAT(values(run_op("GridSample", 20, sampling("nearest", "zeros", 1), {cube, places})[0]),
              ElementsAre(1, 10));
}

TEST(GridSample, HasAGridForEachBatchItemAndAllChannels) {
  const Tensor input = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor grid = floats({2, 1, 1}, {-1, 1});
  EXPECT_THAT(values(run_op("GridSample", 20, sampling("linear", "zeros", 1), {input, grid})[0]),
              ElementsAre(1, 3, 6, 8));
}

TEST(GridSample, TakesNoElementFromNanAndInfinity) {
  const Tensor grid = floats({1, 3, 1}, {kNan, kInfinity, -kInfinity});
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    const auto run = [&](const std::string& padding) {
      return values(run_op("GridSample", 22, sampling(mode, padding), {kLine, grid})[0]);
    };
    EXPECT_THAT(run("zeros"), ElementsAre(0, 0, 0)) << mode;
    EXPECT_THAT(run("border")[2], run("reflection")[2]) << mode;
  }
  // What is outside does not meet an infinity inside.
  const Tensor infinite = floats({1, 1, 2}, {kInfinity, 1});
  EXPECT_THAT(values(run_op("GridSample", 22, sampling("linear", "zeros"),
                            {infinite, floats({1, 1, 1}, {5})})[0]),
              ElementsAre(0));
}

TEST(GridSample, TruncatesIntegersAndKeepsLargeOnes) {
  const Tensor input = ints({1, 1, 2}, {kLargest, -3});
  const Tensor ends = floats({1, 2, 1}, {-1, 1});
  EXPECT_THAT(integers(run_op("GridSample", 16, sampling("nearest", "zeros", 1), {input, ends})[0]),
              ElementsAre(kLargest, -3));
  const Tensor small = ints({1, 1, 2}, {-3, -4});
  const Tensor middle = floats({1, 1, 1}, {0});
  EXPECT_THAT(
      integers(run_op("GridSample", 20, sampling("linear", "zeros", 1), {small, middle})[0]),
      ElementsAre(-3));
  const Tensor flags = bools({1, 1, 2}, {0, 1});
  EXPECT_THAT(bytes(run_op("GridSample", 20, sampling("linear", "zeros", 1), {flags, middle})[0]),
              ElementsAre(1));
}

TEST(GridSample, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    for (const int64_t grid_type : kOnnxFloatTypes) {
      const Tensor found =
          run_op("GridSample", 22, sampling("linear", "zeros"),
                 {cast_onnx(kLine, type), cast_onnx(line_grid({0, 0.5F, 2.25F}), grid_type)})[0];
      EXPECT_THAT(as_floats(found), ElementsAre(10, 15, 50));
    }
  }
}

TEST(GridSample, OfDomainComMicrosoftIsThatOfVersion16) {
  const Tensor plane = floats({1, 1, 1, 4}, {10, 20, 40, 80});
  const Tensor grid = floats({1, 1, 1, 2}, {0, 0});
  EXPECT_THAT(values(run_microsoft_op("GridSample", {}, {plane, grid})), ElementsAre(30));
  EXPECT_THAT(
      values(run_microsoft_op("GridSample", attributes_of({{"mode", "bicubic"}}), {plane, grid})),
      ElementsAre((19 * 60 - 3 * 90) / 32.0F));
}

TEST(GridSample, TakesEmptyInputs) {
  EXPECT_EQ(run_op("GridSample", 22, {}, {kLine, floats({1, 0, 1}, {})})[0].elements(), 0);
  EXPECT_THAT(values(run_op("GridSample", 22, {}, {floats({1, 1, 0}, {}), line_grid({0})})[0]),
              ElementsAre(0));
}

TEST(GridSample, InfersSymbols) {
  const Dim batch = Dim::symbol("n");
  const auto inferred = infer_op("GridSample", 16, {},
                                 {typed(DataType::Float16, Shape{batch, 3, 8, 8}),
                                  typed(DataType::Float32, Shape{batch, Dim::symbol("h"), 5, 2})});
  EXPECT_EQ(shape_text(inferred), "float16 nx3xhx5");
}

TEST(GridSample, RefusesWrongModels) {
  const auto refused = [](int opset, const Attributes& attributes, const Tensor& input,
                          const Tensor& grid) {
    return refusal("GridSample", opset, attributes, {input, grid});
  };
  const Tensor grid = line_grid({0});
  EXPECT_THAT(refused(22, sampling("bilinear", "zeros"), kLine, grid),
              HasSubstr("'linear', 'nearest', 'cubic', found 'bilinear'"));
  EXPECT_THAT(refused(16, sampling("linear", "zeros"), kLine, grid),
              HasSubstr("'bilinear', 'nearest', 'bicubic', found 'linear'"));
  EXPECT_THAT(refused(22, sampling("linear", "edge"), kLine, grid),
              HasSubstr("'border', 'reflection', found 'edge'"));
  EXPECT_THAT(refused(22, {}, floats({1, 4}, {1, 2, 3, 4}), grid), HasSubstr("spatial axis"));
  EXPECT_THAT(refused(22, {}, kLine, floats({1, 1, 2}, {0, 0})), HasSubstr("positions of 1"));
  EXPECT_THAT(refused(22, {}, kLine, floats({2, 1, 1}, {0, 0})), HasSubstr("found 2x1x1"));
  EXPECT_THAT(refused(22, {}, kLine, floats({1, 1, 1, 1}, {0})), HasSubstr("of rank 3"));
  EXPECT_THAT(refused(22, sampling("linear", "border"), floats({1, 1, 0}, {}), grid),
              HasSubstr("along each spatial axis"));
}

}  // namespace
}  // namespace tessera::ops
