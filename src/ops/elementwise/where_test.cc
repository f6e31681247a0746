#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Where, AllThreeAreStretched) {
  const Tensor output =
      run_op("Where", 9, {}, {bools({2, 1}, {1, 0}), floats({3}, {1, 2, 3}), floats({}, {9})})[0];
  EXPECT_EQ(output.dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(values(output), ElementsAre(1, 2, 3, 9, 9, 9));
}

TEST(Where, CarriesElementsOfKnownConditions) {
  const Dim n = Dim::symbol("N");
  InferInput condition = typed(DataType::Bool, Shape{3});
  condition.elements = std::vector<Dim>{1, 0, Dim::symbol("unknown")};
  const auto elements =
      infer_op("Where", 16, {},
               {condition, with_elements({3}, {n, 2, 5}), with_elements({1}, {5})})[0]
          .elements;
  EXPECT_THAT(*elements, ElementsAre(n, Dim(5), Dim(5)));
}

TEST(Where, ReadsConstantConditions) {
  const Tensor constant = bools({2}, {0, 1});
  const auto elements =
      infer_op("Where", 16, {},
               {infer_input(constant), with_elements({2}, {1, 2}), with_elements({2}, {3, 4})})[0]
          .elements;
  EXPECT_THAT(*elements, ElementsAre(Dim(3), Dim(2)));
}

TEST(Where, ContradictionsNameBothShapes) {
  EXPECT_EQ(
      error_of([] {
        run_op("Where", 9, {}, {bools({2}, {1, 0}), floats({1}, {1}), floats({3}, {1, 2, 3})});
      }),
      "InvalidModel: node 'node' (Where), input 'Y': expected a shape that broadcasts with 2, "
      "found 3");
}

}  // namespace
}  // namespace tessera::ops
