#include <cmath>

#include "ops/movement_test.h"
#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

std::vector<Tensor> run_unique_op(std::initializer_list<NamedAttribute> given, const Tensor& input,
                                  int opset = 11) {
  return run_op("Unique", opset, attributes_of(given), {input}, 4);
}

// The examples of ONNX.
TEST(Unique, KeepsTheOrderOfFirstOccurrences) {
  const auto found = run_unique_op({{"sorted", 0}}, floats({6}, {2, 1, 1, 3, 4, 3}));
  EXPECT_THAT(values(found[0]), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(integers(found[1]), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(integers(found[2]), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(integers(found[3]), ElementsAre(1, 2, 2, 1));
}

TEST(Unique, SortsAndFlattens) {
  const auto found = run_unique_op({}, floats({2, 2}, {1, 3, 2, 3}), 28);
  EXPECT_THAT(values(found[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(integers(found[1]), ElementsAre(0, 2, 1));
  EXPECT_THAT(integers(found[2]), ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(integers(found[3]), ElementsAre(1, 1, 2));
}

TEST(Unique, ComparesSlicesAlongAnAxis) {
  const auto rows = run_unique_op({{"axis", 0}}, floats({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(rows[0].dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(values(rows[0]), ElementsAre(1, 0, 0, 2, 3, 4));
  EXPECT_THAT(integers(rows[1]), ElementsAre(0, 2));
  EXPECT_THAT(integers(rows[2]), ElementsAre(0, 0, 1));
  EXPECT_THAT(integers(rows[3]), ElementsAre(2, 1));
  const Tensor cube = floats({2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1});
  const auto slices = run_unique_op({{"axis", -2}}, cube);
  EXPECT_EQ(slices[0].dims(), (std::vector<int64_t>{2, 3, 2}));
  EXPECT_THAT(values(slices[0]), ElementsAre(0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1));
  EXPECT_THAT(integers(slices[1]), ElementsAre(1, 0, 2));
  EXPECT_THAT(integers(slices[2]), ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(integers(slices[3]), ElementsAre(2, 1, 1));
}

// As numpy.unique.
TEST(Unique, TreatsNanAsOneLargestNumberAndZerosAsEqual) {
  const auto found = run_unique_op({}, floats({6}, {kNan, 1, kNan, -0.0F, 0.0F, kInfinity}));
  EXPECT_EQ(found[0].elements(), 4);
  EXPECT_TRUE(std::signbit(values(found[0])[0]));
  EXPECT_TRUE(std::isnan(values(found[0])[3]));
  EXPECT_THAT(integers(found[1]), ElementsAre(3, 1, 5, 0));
  EXPECT_THAT(integers(found[3]), ElementsAre(2, 1, 1, 2));
}

TEST(Unique, TakesOtherTypes) {
  EXPECT_THAT(integers(run_unique_op({}, ints({3}, {kLargest, kSmallest, kLargest}))[0]),
              ElementsAre(kSmallest, kLargest));
  EXPECT_THAT(bytes(run_unique_op({}, bools({3}, {1, 0, 1}))[0]), ElementsAre(0, 1));
}

TEST(Unique, OfNothingIsNothingOrOneEmptySlice) {
  EXPECT_EQ(run_unique_op({}, floats({0}, {}))[0].elements(), 0);
  EXPECT_EQ(run_unique_op({{"axis", 0}}, floats({0, 3}, {}))[0].dims(),
            (std::vector<int64_t>{0, 3}));
  const auto slices = run_unique_op({{"axis", 0}}, floats({3, 0}, {}));
  EXPECT_EQ(slices[0].dims(), (std::vector<int64_t>{1, 0}));
  EXPECT_THAT(integers(slices[3]), ElementsAre(3));
  EXPECT_THAT(values(run_unique_op({}, floats({}, {3}))[0]), ElementsAre(3));
}

TEST(Unique, HasASizeThatTheRunDecides) {
  const Dim rows = Dim::symbol("rows");
  const auto flat = infer_op("Unique", 11, {}, {typed(DataType::Float32, Shape{rows, 3})}, 4);
  EXPECT_EQ(flat[0].type.shape->size(), 1U);
  EXPECT_EQ(flat[0].type.shape, flat[3].type.shape);
  EXPECT_EQ(flat[2].type.shape, Shape{multiply(rows, 3)});
  const auto along = infer_op("Unique", 11, attributes_of({{"axis", 0}}),
                              {typed(DataType::Float32, Shape{rows, 3})}, 4);
  EXPECT_EQ(along[0].type.shape->at(1), Dim(3));
  EXPECT_EQ(along[2].type.shape, Shape{rows});
  EXPECT_FALSE(infer_op("Unique", 11, attributes_of({{"axis", 0}}),
                        {typed(DataType::Float32, std::nullopt)}, 4)[0]
                   .type.shape);
  EXPECT_THAT(refusal("Unique", 11, attributes_of({{"axis", 1}}), {floats({2}, {1, 2})}),
              HasSubstr("[-1, 1)"));
}

TEST(Unique, OfMicrosoftKeepsTheOrder) {
  const Node node = make_node(all_ops(), "Unique", 1, {}, {true}, 3, "com.microsoft");
  ThreadPool pool(1);
  const std::vector<Tensor> inputs = {floats({6}, {2, 1, 1, 3, 4, 3})};
  const auto found = evaluate(all_ops().of(node), node, inputs, pool);
  EXPECT_THAT(values(found[0]), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(integers(found[1]), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(integers(found[2]), ElementsAre(1, 2, 2, 1));
}

TEST(Unique, SortsStrings) {
  const auto found = run_text({"Unique"}, {}, {words({"b", "", "a", "b"})}, 4);
  EXPECT_THAT(texts(found[0]), ElementsAre("", "a", "b"));
  EXPECT_THAT(integers(found[1]), ElementsAre(1, 2, 0));
  EXPECT_THAT(integers(found[2]), ElementsAre(2, 0, 1, 2));
}

}  // namespace
}  // namespace tessera::ops
