#include <limits>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

struct SliceCase {
  const char* name;
  int64_t start;
  int64_t end;
  int64_t step;
  std::vector<float> expected;
};

// The results of NumPy's arange(5)[start:end:step], except for the fourth from last: ONNX clamps a
// start before the first element to the first element.
const SliceCase kSliceCases[] = {
    {"middle", 1, 3, 1, {1, 2}},
    {"from the end", -3, -1, 1, {2, 3}},
    {"to the largest end", 2, kLargest, 1, {2, 3, 4}},
    {"clamped start", -100, 2, 1, {0, 1}},
    {"empty", 3, 1, 1, {}},
    {"every second", 0, kLargest, 2, {0, 2, 4}},
    {"backwards", -1, kSmallest, -1, {4, 3, 2, 1, 0}},
    {"backwards from beyond", kLargest, 1, -2, {4, 2}},
    {"backwards, end counted from the end", 3, -5, -1, {3, 2, 1}},
    {"backwards from before", -100, kSmallest, -1, {0}},
    {"largest step", 1, kLargest, kLargest, {1}},
    {"smallest step", -1, kSmallest, kSmallest, {4}},
    {"smallest start and end", kSmallest, kSmallest, 1, {}},
};

TEST(Slice, RangesAreClamped) {
  const Tensor input = floats({5}, {0, 1, 2, 3, 4});
  for (const SliceCase& item : kSliceCases) {
    const auto outputs =
        run_op("Slice", 13, {},
               {input, ints({item.start}), ints({item.end}), ints({-1}), ints({item.step})});
    EXPECT_EQ(values(outputs[0]), item.expected) << item.name;
    if (item.step != 1) continue;
    const auto given = attributes_of({{"starts", {item.start}}, {"ends", {item.end}}});
    EXPECT_EQ(values(run_op("Slice", 9, given, {input})[0]), item.expected) << item.name;
  }
}

TEST(Slice, SlicesInnerAxesByInt32) {
  const Tensor input = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::vector<int32_t> one = {1};
  const std::vector<int32_t> three = {3};
  const auto outputs = run_op("Slice", 10, {},
                              {input, Tensor::from<int32_t>(DataType::Int32, {1}, one),
                               Tensor::from<int32_t>(DataType::Int32, {1}, three),
                               Tensor::from<int32_t>(DataType::Int32, {1}, one)});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, 4, 5));
}

std::string sliced(const Dim& start, const Dim& end, int64_t step = 1) {
  return shape_text(
      infer_op("Slice", 13, {},
               {typed(DataType::Float32, Shape{Dim::symbol("n"), 7}), followed({start}),
                followed({end}), followed({0}), followed({step})}));
}

TEST(Slice, AWholeSymbolStaysItself) {
  EXPECT_EQ(sliced(0, kLargest), "float32 nx7");
  EXPECT_EQ(sliced(0, std::numeric_limits<int32_t>::max()), "float32 nx7");
  EXPECT_EQ(sliced(0, Dim::symbol("n")), "float32 nx7");
  EXPECT_EQ(sliced(-1, kSmallest, -1), "float32 nx7");
  // Both drop one element.
  EXPECT_EQ(sliced(1, kLargest), sliced(0, -1));
  EXPECT_NE(sliced(1, kLargest), sliced(0, kLargest));
  EXPECT_EQ(sliced(0, 0), "float32 0x7");
}

TEST(Slice, UnknownRangesLeaveTheRank) {
  const auto outputs = infer_op(
      "Slice", 13, {},
      {typed(DataType::Float32, Shape{4, 7}), unknown_list(1), followed({2}), followed({1})});
  EXPECT_EQ(shape_text(outputs), "float32 4x?node.0.1");
}

TEST(Slice, FollowsElements) {
  const auto outputs =
      infer_op("Slice", 13, {},
               {followed({Dim::symbol("n"), 3, 5}), followed({0}), followed({2}), followed({0})});
  EXPECT_EQ(*outputs[0].elements, (std::vector<Dim>{Dim::symbol("n"), 3}));
}

TEST(Slice, RefusesContradictions) {
  const Tensor input = floats({2}, {1, 2});
  const Tensor one = ints({1});
  EXPECT_THAT(refusal("Slice", 13, {}, {input, one, one, ints({0}), ints({0})}),
              HasSubstr("found 0"));
  EXPECT_THAT(refusal("Slice", 13, {}, {input, one, one, ints({kSmallest})}),
              HasSubstr("expected an axis in [-1, 1)"));
  EXPECT_THAT(refusal("Slice", 13, {}, {input, ints({0, 0}), ints({1, 1})}),
              HasSubstr("at most one range for each of 1 dimensions, found 2"));
  EXPECT_THAT(refusal("Slice", 13, {}, {input, one, ints({1, 1})}),
              HasSubstr("as many ends as starts, 1, found 2"));
  EXPECT_THAT(
      refusal("Slice", 13, {}, {floats({1, 1}, {1}), ints({0, 0}), ints({1, 1}), ints({1, -1})}),
      HasSubstr("twice"));
}

}  // namespace
}  // namespace tessera::ops
