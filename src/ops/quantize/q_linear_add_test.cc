#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

std::vector<Tensor> pair_of(const Tensor& left, const Tensor& right) {
  // Left numbers are halves of a byte minus 10, right ones quarters of a byte.
  return {left, scalar(0.5F), zero_point(10), right, scalar(0.25F), Tensor(), scalar(2), Tensor()};
}

TEST(QLinearAdd, RoundsTheSumTiesToEven) {
  // Real numbers (10 + 0) / 2, (12 + 2) / 2 ...: the sums are 5, 7, 9, 128.75 and -5.
  const Tensor left = unsigned_bytes({5}, {20, 22, 24, 255, 0});
  const Tensor right = unsigned_bytes({5}, {0, 4, 8, 25, 0});
  EXPECT_THAT(bytes(run_microsoft("QLinearAdd", {}, pair_of(left, right))[0]),
              ElementsAre(2, 4, 4, 64, 0));
}

TEST(QLinearAdd, BroadcastsSignedBytes) {
  const std::vector<Tensor> inputs = {signed_bytes({2, 1}, {-128, 100}),
                                      scalar(1),
                                      signed_bytes({1}, {-28}),
                                      signed_bytes({3}, {0, 50, -50}),
                                      scalar(2),
                                      Tensor(),
                                      scalar(1),
                                      signed_bytes({}, {3})};
  const Tensor sums = run_microsoft("QLinearAdd", {}, inputs)[0];
  EXPECT_THAT(sums.dims(), ElementsAre(2, 3));
  EXPECT_THAT(sums.as<int8_t>(), ElementsAre(-97, 3, -128, 127, 127, 31));
}

TEST(QLinearMul, MultipliesRealNumbers) {
  const Tensor left = unsigned_bytes({3}, {20, 0, 255});
  const Tensor right = unsigned_bytes({3}, {10, 4, 255});
  // 5 * 2.5, -5 * 1, 122.5 * 63.75, each halved.
  EXPECT_THAT(bytes(run_microsoft("QLinearMul", {}, pair_of(left, right))[0]),
              ElementsAre(6, 0, 255));
}

TEST(MulInteger, IsExact) {
  const std::vector<Tensor> inputs = {unsigned_bytes({2, 1}, {0, 255}), zero_point(128),
                                      unsigned_bytes({2}, {255, 3}), Tensor()};
  const Tensor products = run_microsoft("MulInteger", {}, inputs)[0];
  EXPECT_THAT(products.as<int32_t>(), ElementsAre(-32640, -384, 32385, 381));
}

TEST(QLinearAdd, RefusesWhatDoesNotFit) {
  const auto refusal = [](Shape right, Shape scale) {
    return microsoft_refusal(
        "QLinearAdd", {},
        {bytewise({2, 3}), floating(std::move(scale)), bytewise({}), bytewise(std::move(right)),
         floating({}), bytewise({}), floating({})});
  };
  EXPECT_EQ(refusal({3}, {1}), "");
  EXPECT_THAT(refusal({2}, {}), AllOf(HasSubstr("input 'B'"), HasSubstr("broadcasts")));
  EXPECT_THAT(refusal({3}, {2}), AllOf(HasSubstr("'A_scale'"), HasSubstr("one element")));
  EXPECT_THAT(refusal({3}, {1, 1}), HasSubstr("one element"));
}

TEST(QLinearAdd, InfersUnknownShapes) {
  const InferInput unknown = typed(DataType::Int8, std::nullopt);
  const auto outputs = infer_microsoft(
      "QLinearAdd", {},
      {unknown, floating({}), unknown, unknown, floating({}), unknown, floating({})});
  EXPECT_EQ(outputs[0].type.element, DataType::Int8);
  EXPECT_FALSE(outputs[0].type.shape);
}

}  // namespace
}  // namespace tessera::ops
