#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(SwiGLU, MultipliesSwishByTheLinearInput) {
  const std::vector<Tensor> inputs = {floats({3}, {-1, 0, 1}), floats({3}, {10, 5, 2})};
  // Swish of -1 and 1 is -0.268941... and 0.731058...
  EXPECT_THAT(values(run_op("SwiGLU", 28, {}, inputs)[0]),
              Pointwise(FloatNear(1e-6F), std::vector<float>{-2.68941421F, 0, 1.46211716F}));
  // A sigmoid of 0 is a half.
  EXPECT_THAT(values(run_op("SwiGLU", 28, attributes_of({{"alpha", 0.0F}}), inputs)[0]),
              ElementsAre(-5, 0, 1));
}

TEST(SwiGLU, DoesNotBroadcast) {
  EXPECT_THAT(refusal("SwiGLU", 28, {}, {floats({2}, {1, 2}), floats({1}, {1})}),
              HasSubstr("expected shape [2]"));
  const auto outputs = infer_op(
      "SwiGLU", 28, {},
      {typed(DataType::Float32, Shape{Dim::symbol("n")}), typed(DataType::Float32, Shape{3})});
  EXPECT_EQ(shape_text(outputs), "float32 3");
}

}  // namespace
}  // namespace tessera::ops
