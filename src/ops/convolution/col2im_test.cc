#include <numeric>

#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

std::vector<float> folded_image(const Tensor& input, const std::vector<int64_t>& image,
                                const std::vector<int64_t>& block, Attributes attributes = {}) {
  return values(run_op("Col2Im", 18, std::move(attributes), {input, ints(image), ints(block)})[0]);
}

Tensor counted_blocks(const std::vector<int64_t>& dims) {
  std::vector<float> elements(static_cast<size_t>(element_count(dims)));
  std::iota(elements.begin(), elements.end(), 1.0F);
  return floats(dims, elements);
}

TEST(Col2Im, AddsOverlappingBlocks) {
  // Blocks of 2 at 0, 1 and 2: first elements 1, 2, 3, second elements 4, 5, 6.
  EXPECT_THAT(folded_image(counted_blocks({1, 2, 3}), {4}, {2}), ElementsAre(1, 2 + 4, 3 + 5, 6));
  // Blocks of 1 x 5 at the rows of an image of 5 x 5, as in ONNX's example.
  const Tensor rows = floats({1, 5, 5}, {1,  6,  11, 16, 21, 2,  7,  12, 17, 22, 3,  8, 13,
                                         18, 23, 4,  9,  14, 19, 24, 5,  0,  15, 20, 25});
  EXPECT_THAT(folded_image(rows, {5, 5}, {1, 5}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                          22, 23, 24, 25));
}

TEST(Col2Im, TakesStridesDilationsAndPadding) {
  EXPECT_THAT(
      folded_image(counted_blocks({1, 2, 2}), {5}, {2}, attributes_of({{"strides", list({3})}})),
      ElementsAre(1, 3, 0, 2, 4));
  EXPECT_THAT(
      folded_image(counted_blocks({1, 2, 2}), {4}, {2}, attributes_of({{"dilations", list({2})}})),
      ElementsAre(1, 2, 3, 4));
  // The first element of the first block and the second of the last one lie in the padding.
  EXPECT_THAT(
      folded_image(counted_blocks({1, 2, 4}), {3}, {2}, attributes_of({{"pads", list({1, 1})}})),
      ElementsAre(2 + 5, 3 + 6, 4 + 7));
}

TEST(Col2Im, SeparatesChannelsAndBatchItems) {
  EXPECT_THAT(folded_image(counted_blocks({2, 4, 1}), {2}, {2}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(run_op("Col2Im", 18, {}, {counted_blocks({2, 4, 1}), ints({2}), ints({2})})[0].dims(),
            (std::vector<int64_t>{2, 2, 2}));
}

TEST(Col2Im, HasAnyNumberOfAxes) {
  // A single block is the image itself, in row-major order.
  const std::vector<int64_t> block = {2, 1, 3, 1, 2, 1, 1, 1, 1, 2};
  const Tensor input = counted_blocks({1, 24, 1});
  EXPECT_EQ(folded_image(input, block, block), values(input));
  // Blocks of one element each are counted in row-major order, too.
  const std::vector<int64_t> ones(block.size(), 1);
  EXPECT_EQ(folded_image(counted_blocks({1, 1, 24}), block, ones), values(input));
}

TEST(Col2Im, WrapsIntegersAndJoinsBools) {
  const Tensor large = ints({1, 2, 2}, {1, kLargest, 1, 5});
  EXPECT_THAT(integers(run_op("Col2Im", 18, {}, {large, ints({3}), ints({2})})[0]),
              ElementsAre(1, kSmallest, 5));
  const Tensor small =
      Tensor::from<int8_t>(DataType::Int8, {1, 2, 2}, {std::array<int8_t, 4>{1, 100, 100, -5}});
  EXPECT_THAT(run_op("Col2Im", 18, {}, {small, ints({3}), ints({2})})[0].as<int8_t>(),
              ElementsAre(1, -56, -5));
  const Tensor flags = bools({1, 2, 2}, {0, 1, 1, 0});
  EXPECT_THAT(bytes(run_op("Col2Im", 18, {}, {flags, ints({3}), ints({2})})[0]),
              ElementsAre(0, 1, 0));
}

TEST(Col2Im, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const Tensor input = cast_onnx(counted_blocks({1, 2, 3}), type);
    EXPECT_THAT(as_floats(run_op("Col2Im", 18, {}, {input, ints({4}), ints({2})})[0]),
                ElementsAre(1, 6, 8, 6));
  }
}

TEST(Col2Im, TakesEmptyInputsAndImagesWithoutABlock) {
  EXPECT_THAT(folded_image(floats({0, 2, 3}, {}), {4}, {2}), IsEmpty());
  EXPECT_THAT(folded_image(floats({1, 2147483647, 0}, {}), {2}, {2147483647}), ElementsAre(0, 0));
}

TEST(Col2Im, InfersSizesAsFarAsTheyAreKnown) {
  const Dim length = Dim::symbol("l");
  const auto inferred = infer_op("Col2Im", 18, {},
                                 {typed(DataType::Float32, Shape{Dim::symbol("n"), 12, length}),
                                  followed({Dim::symbol("h"), 9}), followed({2, 3})});
  EXPECT_EQ(shape_text(inferred), "float32 nx2xhx9");
  const auto of_lists = infer_op("Col2Im", 18, {},
                                 {typed(DataType::Float32, std::nullopt),
                                  typed(DataType::Int64, std::nullopt), unknown_list(3)});
  EXPECT_EQ(of_lists[0].type.shape->size(), 5U);
}

TEST(Col2Im, RefusesWrongModels) {
  const auto refused = [](const Tensor& input, const std::vector<int64_t>& image,
                          const std::vector<int64_t>& block, Attributes attributes = {}) {
    return refusal("Col2Im", 18, std::move(attributes), {input, ints(image), ints(block)});
  };
  EXPECT_THAT(refused(counted_blocks({2, 3}), {4}, {2}), HasSubstr("elements of a block x blocks"));
  EXPECT_THAT(refused(counted_blocks({1, 3, 3}), {4}, {2}), HasSubstr("a multiple of 2 elements"));
  EXPECT_THAT(refused(counted_blocks({1, 2, 4}), {4}, {2}), HasSubstr("expected 3 blocks"));
  EXPECT_THAT(refused(counted_blocks({1, 2, 3}), {4}, {2, 1}), HasSubstr("expected 1 sizes"));
  EXPECT_THAT(refused(counted_blocks({1, 2, 3}), {4}, {0}),
              HasSubstr("sizes from 1 to 2147483647"));
  EXPECT_THAT(refused(counted_blocks({1, 2, 3}), {-4}, {2}), HasSubstr("found -4"));
  EXPECT_THAT(refused(counted_blocks({1, 2, 3}), {}, {}), HasSubstr("at least one size"));
  EXPECT_THAT(
      refused(counted_blocks({1, 2, 3}), {4}, {2}, attributes_of({{"strides", list({1, 1})}})),
      HasSubstr("expected 1 numbers, found 2"));
  EXPECT_THAT(
      refused(counted_blocks({1, 2, 3}), {4}, {2}, attributes_of({{"pads", list({-1, 0})}})),
      HasSubstr("found -1"));
  EXPECT_THAT(
      refused(counted_blocks({1, 2, 3}), {kLargest}, {2}, attributes_of({{"pads", list({1, 1})}})),
      HasSubstr("64 bits"));
}

}  // namespace
}  // namespace tessera::ops
