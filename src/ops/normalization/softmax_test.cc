#include <cmath>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Softmax, RunsAlongOneAxisSinceVersion13) {
  const Tensor input = floats({1, 2, 2}, {0, 1, 0, 1});
  const std::vector<Tensor> outputs = run_op("Softmax", 13, attributes_of({{"axis", 1}}), {input});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
}

TEST(Softmax, FlattensFromTheAxisOnBeforeVersion13) {
  const Tensor input = floats({1, 2, 2}, {0, 0, 0, 0});
  const std::vector<Tensor> outputs = run_op("Softmax", 9, {}, {input});
  EXPECT_THAT(values(outputs[0]), testing::Each(0.25F));
}

TEST(Softmax, LargeInputsDoNotOverflow) {
  const std::vector<Tensor> outputs = run_op("Softmax", 13, {}, {floats({2}, {1000, 1000})});
  EXPECT_THAT(values(outputs[0]), testing::Each(0.5F));
}

TEST(Softmax, LogarithmIsTheLogarithm) {
  const std::vector<Tensor> outputs =
      run_op("LogSoftmax", 13, {}, {floats({2}, {0, std::log(3.0F)})});
  EXPECT_NEAR(values(outputs[0])[0], std::log(0.25), 1e-6);
  EXPECT_NEAR(values(outputs[0])[1], std::log(0.75), 1e-6);
}

TEST(Softmax, KeepsSymbolsOfItsInput) {
  const Shape shape = {Dim::symbol("batch"), 10};
  const auto outputs = infer_op("Softmax", 13, {}, {typed(DataType::Float32, shape)});
  EXPECT_EQ(outputs[0].type, Type::tensor(DataType::Float32, shape));
}

TEST(Hardmax, MarksTheFirstLargestOfEachRow) {
  const Tensor input = floats({1, 2, 3}, {1, 3, 3, -kInfinity, -kInfinity, -kInfinity});
  EXPECT_THAT(values(run_op("Hardmax", 13, {}, {input})[0]), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(values(run_op("Hardmax", 11, {}, {input})[0]), ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_THAT(values(run_op("Hardmax", 13, attributes_of({{"axis", 1}}), {input})[0]),
              ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(values(run_op("Hardmax", 13, {}, {floats({4}, {1, kNan, 9, kNan})})[0]),
              ElementsAre(0, 1, 0, 0));
}

}  // namespace
}  // namespace tessera::ops
