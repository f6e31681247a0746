#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

TEST(ConvInteger, IsExact) {
  // The example of the standard.
  const Tensor x = unsigned_bytes({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  const Tensor w = unsigned_bytes({1, 1, 2, 2}, {1, 1, 1, 1});
  const Tensor y = run_op("ConvInteger", 10, {}, {x, w, unsigned_bytes({}, {1})})[0];
  EXPECT_THAT(y.as<int32_t>(), ElementsAre(12, 16, 24, 28));
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  const Tensor x = unsigned_bytes({1, 1, 1, 2}, {5, 7});
  const Tensor w = unsigned_bytes({2, 1, 1, 2}, {1, 2, 3, 4});
  const Tensor y = run_op("ConvInteger", 10, attributes_of({{"pads", {0, 1, 0, 0}}}),
                          {x, w, unsigned_bytes({}, {4}), unsigned_bytes({2}, {0, 3})})[0];
  // [0, 1, 3] with [1, 2], and with [0, 1].
  EXPECT_THAT(y.as<int32_t>(), ElementsAre(2, 7, 1, 3));
}

TEST(QLinearConv, AddsTheBiasAndRoundsOnce) {
  const Tensor x = unsigned_bytes({1, 1, 1, 3}, {10, 20, 30});
  const Tensor w = unsigned_bytes({2, 1, 1, 1}, {3, 5});
  const Tensor bias = Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{1, -2});
  const std::vector<Tensor> inputs = {x,
                                      floats({}, {0.5F}),
                                      unsigned_bytes({}, {10}),
                                      w,
                                      floats({2}, {1, 2}),
                                      unsigned_bytes({2}, {1, 4}),
                                      floats({}, {2}),
                                      unsigned_bytes({}, {100}),
                                      bias};
  // Sums 0, 20, 40 and 0, 10, 20; with bias 1, 21, 41 and -2, 8, 18; times 1/4 and 1/2.
  EXPECT_THAT(bytes(run_op("QLinearConv", 10, {}, inputs)[0]),
              ElementsAre(100, 105, 110, 99, 104, 109));
}

TEST(QLinearConv, TakesChannelsOnTheLastAxis) {
  // Channels (1, 2, 3) and (10, 20, 30); the weights of two outputs, of one tap each.
  const Tensor bias = Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{5, 0});
  const std::vector<Tensor> inputs = {unsigned_bytes({1, 3, 2}, {1, 10, 2, 20, 3, 30}),
                                      scalar(1),
                                      zero_point(0),
                                      signed_bytes({2, 2, 1}, {1, 1, 2, -1}),
                                      floats({2}, {1, 0.5F}),
                                      signed_bytes({}, {0}),
                                      scalar(1),
                                      zero_point(20),
                                      bias};
  const Tensor y = run_microsoft(
      "QLinearConv", attributes_of({{"channels_last", 1}, {"strides", {2}}}), inputs)[0];
  EXPECT_THAT(y.dims(), ElementsAre(1, 2, 2));
  // 11 + 5 and 33 + 5; -8 / 2 and -24 / 2.
  EXPECT_THAT(bytes(y), ElementsAre(36, 16, 58, 8));
}

}  // namespace
}  // namespace tessera::ops
