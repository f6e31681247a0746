#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const std::vector<float> kOnes(1000, 1.0F);

TEST(Dropout, CopiesUnlessTrainingIsAskedFor) {
  const Tensor input = floats({3}, {1, 2, 3});
  for (const int opset : {6, 7, 10, 12, 13, 22}) {
    const auto outputs = run_op("Dropout", opset, {}, {input}, 2);
    EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, 3)) << opset;
    if (opset < 10) {
      EXPECT_THAT(values(outputs[1]), testing::Each(0)) << opset;
    } else {
      EXPECT_EQ(outputs[1].type(), DataType::Bool) << opset;
      EXPECT_THAT(bytes(outputs[1]), testing::Each(opset < 12 ? 0 : 1)) << opset;
    }
  }
  const auto outputs = run_op("Dropout", 13, {}, {input, floats({}, {0.9F}), bools({}, {0})}, 1);
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, 3));
}

TEST(Dropout, DropsAndScalesInTraining) {
  Attributes attributes = attributes_of({{"seed", 5}});
  const std::vector<Tensor> inputs = {floats({1000}, kOnes), floats({}, {0.75F}), bools({}, {1})};
  const auto outputs = run_op("Dropout", 13, attributes, inputs, 2);
  int64_t kept = 0;
  for (size_t index = 0; index < 1000; ++index) {
    const bool is_kept = bytes(outputs[1])[index] != 0;
    EXPECT_EQ(values(outputs[0])[index], is_kept ? 4 : 0);
    kept += is_kept ? 1 : 0;
  }
  EXPECT_GT(kept, 200);
  EXPECT_LT(kept, 300);
  // An equal seed drops the same elements; another seed drops others.
  EXPECT_EQ(bytes(run_op("Dropout", 13, attributes, inputs, 2)[1]), bytes(outputs[1]));
  attributes.set("seed", int64_t{6});
  EXPECT_NE(bytes(run_op("Dropout", 13, attributes, inputs, 2)[1]), bytes(outputs[1]));
}

TEST(Dropout, RefusesRatiosOutsideTheirRange) {
  EXPECT_THAT(error_of([] {
                run_op("Dropout", 13, {}, {floats({1}, {1}), floats({}, {1}), bools({}, {1})});
              }),
              HasSubstr("expected a ratio in [0, 1), found 1.0"));
}

}  // namespace
}  // namespace tessera::ops
