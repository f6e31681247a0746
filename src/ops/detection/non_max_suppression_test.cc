#include <limits>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

// The boxes and scores of the examples in the standard.
const Tensor kExampleBoxes =
    floats({1, 6, 4}, {0, 0,  1, 1,  0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                       0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100,   1, 101});
const Tensor kExampleScores = floats({1, 1, 6}, {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F});

std::vector<Tensor> suppression(const Tensor& boxes, const Tensor& scores, int64_t most,
                                float iou_threshold) {
  return {boxes, scores, ints({1}, {most}), floats({1}, {iou_threshold})};
}

std::vector<Tensor> with_score_threshold(std::vector<Tensor> inputs, float threshold) {
  inputs.push_back(floats({}, {threshold}));
  return inputs;
}

std::vector<int64_t> selected(const std::vector<Tensor>& inputs, int64_t center_point_box = 0) {
  const Tensor result = run_op("NonMaxSuppression", 11,
                               attributes_of({{"center_point_box", center_point_box}}), inputs)[0];
  EXPECT_EQ(result.dims().size(), 2U);
  EXPECT_EQ(result.dims()[1], 3);
  return integers(result);
}

// Only the boxes of a result for one batch and one class.
std::vector<int64_t> selected_boxes(const std::vector<Tensor>& inputs,
                                    int64_t center_point_box = 0) {
  const std::vector<int64_t> indices = selected(inputs, center_point_box);
  std::vector<int64_t> boxes;
  for (size_t index = 2; index < indices.size(); index += 3) boxes.push_back(indices[index]);
  return boxes;
}

// `count` boxes of 1 x 1 at x = 0, 10, 20 and so on.
Tensor boxes_apart(int64_t count) {
  std::vector<float> numbers;
  for (int64_t box = 0; box < count; ++box) {
    const auto x = static_cast<float>(10 * box);
    numbers.insert(numbers.end(), {0, x, 1, x + 1});
  }
  return floats({1, count, 4}, numbers);
}

TEST(NonMaxSuppression, GivesTheExamplesOfTheStandard) {
  const auto three = suppression(kExampleBoxes, kExampleScores, 3, 0.5F);
  EXPECT_THAT(selected_boxes(with_score_threshold(three, 0)), ElementsAre(3, 0, 5));
  EXPECT_THAT(selected_boxes(with_score_threshold(three, 0.4F)), ElementsAre(3, 0));
  const auto two = suppression(kExampleBoxes, kExampleScores, 2, 0.5F);
  EXPECT_THAT(selected(with_score_threshold(two, 0)), ElementsAre(0, 0, 3, 0, 0, 0));
}

TEST(NonMaxSuppression, TakesCornersInAnyOrderAndCentres) {
  const Tensor corners = floats({1, 3, 4}, {1, 1, 0, 0, 0, 0.1F, 1, 1.1F, 1, 11, 0, 10});
  const Tensor scores = floats({1, 1, 3}, {0.9F, 0.8F, 0.7F});
  EXPECT_THAT(selected_boxes(suppression(corners, scores, 3, 0.5F)), ElementsAre(0, 2));
  const Tensor centres = floats({1, 3, 4}, {0.5F, 0.5F, 1, 1, 0.5F, 0.6F, 1, 1, 0.5F, 10.5F, 1, 1});
  EXPECT_THAT(selected_boxes(suppression(centres, scores, 3, 0.5F), 1), ElementsAre(0, 2));
}

TEST(NonMaxSuppression, SelectsInEachBatchAndClass) {
  const Tensor boxes = floats({2, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6});
  const Tensor scores = floats({2, 2, 2}, {1, 2, 3, 2, 1, 2, 4, 3});
  EXPECT_THAT(selected(suppression(boxes, scores, 9, 0)),
              ElementsAre(0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1));
}

TEST(NonMaxSuppression, KeepsBoxesWhoseOverlapEqualsTheThreshold) {
  // The intersection is 1, the union 2.
  const Tensor boxes = floats({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 2});
  const Tensor scores = floats({1, 1, 2}, {2, 1});
  EXPECT_THAT(selected_boxes(suppression(boxes, scores, 2, 0.5F)), ElementsAre(0, 1));
  EXPECT_THAT(selected_boxes(suppression(boxes, scores, 2, 0.49F)), ElementsAre(0));
  // 7 / 10 in float32 is the nearest number to 0.7, so it equals the threshold.
  const Tensor longer = floats({1, 2, 4}, {0, 0, 1, 10, 0, 0, 1, 7});
  EXPECT_THAT(selected_boxes(suppression(longer, scores, 2, 0.7F)), ElementsAre(0, 1));
}

TEST(NonMaxSuppression, OfEqualScoresTakesTheFirst) {
  const Tensor scores = floats({1, 1, 4}, {1, 3, 3, 0.0F});
  EXPECT_THAT(selected_boxes(suppression(boxes_apart(4), scores, 9, 0)), ElementsAre(1, 2, 0, 3));
  const Tensor zeros = floats({1, 1, 3}, {-0.0F, 0, -0.0F});
  EXPECT_THAT(selected_boxes(suppression(boxes_apart(3), zeros, 9, 0)), ElementsAre(0, 1, 2));
}

TEST(NonMaxSuppression, RanksNanLastAndRemovesItIfThereIsAThreshold) {
  const Tensor scores = floats({1, 1, 4}, {kNan, 1, -kInfinity, kInfinity});
  const auto inputs = suppression(boxes_apart(4), scores, 9, 0);
  EXPECT_THAT(selected_boxes(inputs), ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(selected_boxes(with_score_threshold(inputs, -5)), ElementsAre(3, 1));
  EXPECT_THAT(selected_boxes(with_score_threshold(inputs, kNan)), IsEmpty());
}

TEST(NonMaxSuppression, RemovesScoresThatEqualTheThreshold) {
  const Tensor scores = floats({1, 1, 3}, {0.5F, 0.25F, 0});
  const auto inputs = suppression(boxes_apart(3), scores, 9, 0);
  EXPECT_THAT(selected_boxes(with_score_threshold(inputs, 0.25F)), ElementsAre(0));
  EXPECT_THAT(selected_boxes(inputs), ElementsAre(0, 1, 2));
}

TEST(NonMaxSuppression, BoxesWithoutAnAreaOverlapNothing) {
  const Tensor boxes = floats({1, 4, 4}, {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, kNan, 1, 0, 0, kNan, 1});
  const Tensor scores = floats({1, 1, 4}, {4, 3, 2, 1});
  EXPECT_THAT(selected_boxes(suppression(boxes, scores, 9, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(selected_boxes(suppression(boxes, scores, 9, 0), 1), ElementsAre(0, 1, 2, 3));
}

// More than one piece of what is sorted, and more than one block of what is compared.
TEST(NonMaxSuppression, SelectsAmongManyBoxes) {
  constexpr int64_t kCount = 3000;
  std::vector<float> scores;
  std::vector<int64_t> expected;
  for (int64_t box = 0; box < kCount; ++box) {
    scores.push_back(static_cast<float>(box));
    expected.push_back(kCount - 1 - box);
  }
  const Tensor given = floats({1, 1, kCount}, scores);
  EXPECT_EQ(selected_boxes(suppression(boxes_apart(kCount), given, kLargest, 0)), expected);
  expected.resize(700);
  EXPECT_EQ(selected_boxes(suppression(boxes_apart(kCount), given, 700, 0)), expected);
}

TEST(NonMaxSuppression, GivesNothingWithoutAPositiveLimit) {
  EXPECT_THAT(selected({kExampleBoxes, kExampleScores}), IsEmpty());
  EXPECT_THAT(selected(suppression(kExampleBoxes, kExampleScores, 0, 0.5F)), IsEmpty());
  EXPECT_THAT(selected(suppression(kExampleBoxes, kExampleScores, kSmallest, 0.5F)), IsEmpty());
  const auto inferred =
      infer_op("NonMaxSuppression", 10, {},
               {typed(DataType::Float32, std::nullopt), typed(DataType::Float32, std::nullopt)});
  EXPECT_EQ(*inferred[0].type.shape, (Shape{0, 3}));
}

TEST(NonMaxSuppression, TakesEmptyInputs) {
  EXPECT_THAT(selected(suppression(floats({1, 0, 4}, {}), floats({1, 2, 0}, {}), 3, 0)), IsEmpty());
  EXPECT_THAT(selected(suppression(floats({0, 2, 4}, {}), floats({0, 3, 2}, {}), 3, 0)), IsEmpty());
  EXPECT_THAT(selected(suppression(kExampleBoxes, floats({1, 0, 6}, {}), 3, 0)), IsEmpty());
}

TEST(NonMaxSuppression, HasAnUnknownNumberOfResultsUntilAllInputsAreKnown) {
  const auto inferred = infer_op("NonMaxSuppression", 11, {},
                                 {typed(DataType::Float32, Shape{Dim::symbol("n"), 6, 4}),
                                  known(kExampleScores), known(ints({1}, {3}))});
  ASSERT_EQ(inferred[0].type.shape->size(), 2U);
  EXPECT_FALSE((*inferred[0].type.shape)[0].is_known());
  EXPECT_EQ((*inferred[0].type.shape)[1], Dim(3));
}

TEST(NonMaxSuppression, RefusesWrongModels) {
  const auto refused = [](const std::vector<Tensor>& inputs, int64_t center_point_box = 0) {
    return refusal("NonMaxSuppression", 11, attributes_of({{"center_point_box", center_point_box}}),
                   inputs);
  };
  EXPECT_THAT(refused({floats({6, 4}, std::vector<float>(24)), kExampleScores}),
              HasSubstr("batches x boxes x 4, found 6x4"));
  EXPECT_THAT(refused({floats({1, 6, 5}, std::vector<float>(30)), kExampleScores}),
              HasSubstr("batches x boxes x 4, found 1x6x5"));
  EXPECT_THAT(refused({kExampleBoxes, floats({6}, std::vector<float>(6))}),
              HasSubstr("batches x classes x boxes, found 6"));
  EXPECT_THAT(refused({kExampleBoxes, floats({1, 1, 5}, std::vector<float>(5))}),
              HasSubstr("1 batches and 6 boxes"));
  EXPECT_THAT(refused({kExampleBoxes, kExampleScores, ints({2}, {1, 2})}),
              HasSubstr("expected one number, found shape 2"));
  EXPECT_THAT(refused(suppression(kExampleBoxes, kExampleScores, 1, 1.5F)),
              HasSubstr("in [0, 1], found 1.5"));
  EXPECT_THAT(refused(suppression(kExampleBoxes, kExampleScores, 1, kNan)),
              HasSubstr("in [0, 1], found"));
  EXPECT_THAT(refused({kExampleBoxes, kExampleScores}, 2), HasSubstr("0 or 1, found 2"));
}

}  // namespace
}  // namespace tessera::ops
