#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

TEST(QLinearSigmoid, IsThatOfRealNumbers) {
  const std::vector<Tensor> inputs = {unsigned_bytes({5}, {0, 64, 128, 192, 255}),
                                      scalar(1.0F / 16), zero_point(128), scalar(1.0F / 256)};
  // 256 times the sigmoid of -8, -4, 0, 4 and 7.9375.
  EXPECT_THAT(bytes(run_microsoft("QLinearSigmoid", {}, inputs)[0]),
              ElementsAre(0, 5, 128, 251, 255));
}

TEST(QLinearLeakyRelu, ScalesNegativeNumbers) {
  const std::vector<Tensor> inputs = {signed_bytes({2, 2}, {-128, -2, 0, 100}), scalar(0.5F),
                                      signed_bytes({}, {0}), scalar(0.25F),
                                      signed_bytes({}, {-10})};
  const Tensor half =
      run_microsoft("QLinearLeakyRelu", attributes_of({{"alpha", 0.5F}}), inputs)[0];
  EXPECT_THAT(half.as<int8_t>(), ElementsAre(-128, -12, -10, 127));
  // By default a hundredth: -64 becomes -0.64, which is -2.56 quarters.
  EXPECT_EQ(run_microsoft("QLinearLeakyRelu", {}, inputs)[0].as<int8_t>()[0], -13);
}

TEST(QLinearSigmoid, RefusesSeveralScales) {
  EXPECT_THAT(microsoft_refusal("QLinearSigmoid", {},
                                {bytewise({4}), floating({4}), bytewise({}), floating({})}),
              HasSubstr("'X_scale'"));
  EXPECT_THAT(microsoft_refusal(
                  "QLinearSigmoid", {},
                  {bytewise({4}), floating({}), typed(DataType::Int8, Shape{}), floating({})}),
              HasSubstr("'X_zero_point'"));
}

}  // namespace
}  // namespace tessera::ops
