#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const std::vector<Tensor> kInputs = {floats({2, 2, 1}, {1, 10, 3, 30}), floats({2}, {1, 2}),
                                     floats({2}, {0, 1}), floats({2}, {2, 20}),
                                     floats({2}, {4, 25})};

Attributes exact() { return attributes_of({{"epsilon", 0.0F}}); }

TEST(BatchNormalization, UsesTheGivenStatistics) {
  for (const int opset : {7, 9, 14, 15}) {
    EXPECT_THAT(values(run_op("BatchNormalization", opset, exact(), kInputs)[0]),
                ElementsAre(-0.5F, -3, 0.5F, 5));
  }
}

TEST(BatchNormalization, Version6TrainsUnlessItIsATest) {
  Attributes attributes = exact();
  EXPECT_THAT(values(run_op("BatchNormalization", 6, attributes, kInputs)[0]),
              ElementsAre(-1, -1, 1, 3));
  attributes.set("is_test", int64_t{1});
  EXPECT_THAT(values(run_op("BatchNormalization", 6, attributes, kInputs)[0]),
              ElementsAre(-0.5F, -3, 0.5F, 5));
}

TEST(BatchNormalization, TrainingMovesTheStatistics) {
  Attributes attributes = exact();
  attributes.set("training_mode", int64_t{1});
  attributes.set("momentum", 0.5F);
  const auto outputs = run_op("BatchNormalization", 15, attributes, kInputs, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(-1, -1, 1, 3));
  EXPECT_THAT(values(outputs[1]), ElementsAre(2, 20));
  EXPECT_THAT(values(outputs[2]), ElementsAre(2.5F, 62.5F));
}

TEST(BatchNormalization, EveryElementCanHaveItsOwnStatistics) {
  Attributes attributes = exact();
  attributes.set("spatial", int64_t{0});
  const Tensor ones = floats({1, 2}, {1, 1});
  const auto outputs = run_op(
      "BatchNormalization", 7, attributes,
      {floats({1, 1, 2}, {5, 7}), ones, floats({1, 2}, {0, 1}), floats({1, 2}, {4, 5}), ones});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 3));
}

}  // namespace
}  // namespace tessera::ops
