#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(ConstantOfShape, FillsTheShape) {
  const Tensor output = run_op("ConstantOfShape", 9, attributes_of({{"value", ints({1}, {7})}}),
                               {ints({2}, {2, 1})})[0];
  EXPECT_EQ(output.dims(), (std::vector<int64_t>{2, 1}));
  EXPECT_THAT(integers(output), ElementsAre(7, 7));
}

TEST(ConstantOfShape, IsAFloatZeroByDefault) {
  const Tensor output = run_op("ConstantOfShape", 9, {}, {ints({0}, {})})[0];
  EXPECT_EQ(output.rank(), 0);
  EXPECT_THAT(values(output), ElementsAre(0));
}

TEST(ConstantOfShape, SymbolsBecomeDimensions) {
  const Dim n = Dim::symbol("N");
  EXPECT_EQ(infer_op("ConstantOfShape", 9, {}, {with_elements({2}, {n, 3})})[0].type,
            Type::tensor(DataType::Float32, Shape{n, 3}));
  // The rank is known even if nothing else is.
  const auto outputs = infer_op("ConstantOfShape", 9, {}, {typed(DataType::Int64, Shape{2})});
  ASSERT_EQ(outputs[0].type.shape->size(), 2);
  EXPECT_NE((*outputs[0].type.shape)[0], (*outputs[0].type.shape)[1]);
}

TEST(ConstantOfShape, CarriesElements) {
  EXPECT_THAT(*infer_op("ConstantOfShape", 9, attributes_of({{"value", ints({1}, {1})}}),
                        {with_elements({1}, {3})})[0]
                   .elements,
              ElementsAre(Dim(1), Dim(1), Dim(1)));
}

TEST(ConstantOfShape, RefusesHostileInput) {
  EXPECT_THAT(error_of([] { run_op("ConstantOfShape", 9, {}, {ints({1}, {-1})}); }),
              HasSubstr("expected dimensions of at least 0, found -1"));
  EXPECT_THAT(error_of([&] {
                run_op("ConstantOfShape", 9, attributes_of({{"value", ints({2}, {7, 8})}}),
                       {ints({1}, {1})});
              }),
              HasSubstr("expected one element, found shape 2"));
}

}  // namespace
}  // namespace tessera::ops
