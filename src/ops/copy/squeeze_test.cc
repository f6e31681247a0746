#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Squeeze, TakesAllOnesOrTheGivenAxes) {
  const Tensor input(DataType::Float32, {1, 3, 1});
  EXPECT_THAT(run_op("Squeeze", 11, {}, {input})[0].dims(), ElementsAre(3));
  EXPECT_THAT(run_op("Squeeze", 11, attributes_of({{"axes", {-1}}}), {input})[0].dims(),
              ElementsAre(1, 3));
  EXPECT_THAT(run_op("Squeeze", 13, {}, {input, ints({0})})[0].dims(), ElementsAre(3, 1));
  EXPECT_THAT(refusal("Squeeze", 13, {}, {input, ints({1})}),
              HasSubstr("expected dimension 1 to be 1, found shape 1x3x1"));
  EXPECT_THAT(refusal("Squeeze", 13, {}, {input, ints({0, -3})}), HasSubstr("twice"));
}

TEST(Squeeze, TrustsSymbolsAtGivenAxesOnly) {
  const Shape shape = {Dim::symbol("n"), 3};
  const InferInput input = typed(DataType::Float32, shape);
  EXPECT_EQ(shape_text(infer_op("Squeeze", 13, {}, {input, followed({0})})), "float32 3");
  EXPECT_EQ(shape_text(infer_op("Squeeze", 13, {}, {input})), "float32 ?");
  EXPECT_EQ(shape_text(infer_op("Squeeze", 13, {}, {input, unknown_list(1)})), "float32 ?node.0.0");
}

TEST(Unsqueeze, PutsOnesIn) {
  const Tensor input(DataType::Float32, {3, 4});
  const auto outputs = run_op("Unsqueeze", 13, {}, {input, ints({-1, 0})});
  EXPECT_THAT(outputs[0].dims(), ElementsAre(1, 3, 4, 1));
  EXPECT_THAT(run_op("Unsqueeze", 11, attributes_of({{"axes", {1}}}), {input})[0].dims(),
              ElementsAre(3, 1, 4));
  EXPECT_THAT(refusal("Unsqueeze", 13, {}, {input, ints({3})}), HasSubstr("[-3, 3)"));
  EXPECT_THAT(refusal("Unsqueeze", 13, {}, {input, ints({0, -4})}), HasSubstr("twice"));
}

TEST(Unsqueeze, FollowsElements) {
  InferInput scalar = typed(DataType::Int64, Shape{});
  scalar.elements = std::vector<Dim>{Dim::symbol("n")};
  const auto outputs = infer_op("Unsqueeze", 13, {}, {scalar, followed({0})});
  EXPECT_EQ(shape_text(outputs), "int64 1");
  EXPECT_EQ(*outputs[0].elements, std::vector<Dim>{Dim::symbol("n")});
}

}  // namespace
}  // namespace tessera::ops
