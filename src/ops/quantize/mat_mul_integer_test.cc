#include <random>

#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MatMulInteger, IsExact) {
  // The example of the standard.
  const Tensor a = unsigned_bytes({4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0});
  const Tensor b = unsigned_bytes({3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor y = run_op("MatMulInteger", 10, {},
                          {a, b, unsigned_bytes({1}, {12}), unsigned_bytes({1}, {0})})[0];
  EXPECT_THAT(y.as<int32_t>(), ElementsAre(-38, -83, -44, -98, -50, -113, -56, -128));
}

TEST(MatMulInteger, HasZeroPointsByRowAndColumn) {
  const Tensor a = unsigned_bytes({2, 2}, {1, 2, 3, 4});
  const Tensor b = signed_bytes({2, 2}, {-1, 2, -3, 4});
  const Tensor y = run_op("MatMulInteger", 10, {},
                          {a, b, unsigned_bytes({2}, {1, 3}), signed_bytes({2}, {-1, 2})})[0];
  // [[0, 1], [0, 1]] times [[0, 0], [-2, 2]]
  EXPECT_THAT(y.as<int32_t>(), ElementsAre(-2, 2, -2, 2));
  const Tensor rows = run_op("MatMulInteger", 10, {}, {a, b, unsigned_bytes({2, 1}, {1, 3})})[0];
  EXPECT_THAT(rows.as<int32_t>(), ElementsAre(-3, 4, -3, 4));
}

TEST(MatMulInteger, SumsManyLargeProducts) {
  const std::vector<uint8_t> large(10000, 255);
  const Tensor y =
      run_op("MatMulInteger", 10, {},
             {unsigned_bytes({1, 10000}, large), unsigned_bytes({10000, 1}, large)})[0];
  EXPECT_EQ(y.as<int32_t>()[0], 650250000);
}

TEST(MatMulInteger, RefusesZeroPointsThatDoNotFit) {
  EXPECT_THAT(
      error_of(ErrorKind::InvalidModel,
               [] {
                 infer_op("MatMulInteger", 10, {},
                          {typed(DataType::UInt8, Shape{2, 3}), typed(DataType::UInt8, Shape{3, 4}),
                           typed(DataType::UInt8, Shape{3})});
               }),
      AllOf(HasSubstr("'a_zero_point'"), HasSubstr("one element or 2, found 3")));
}

TEST(MatMulInteger, RefusesAZeroPointForEachElement) {
  const auto error = [](const Shape& of_left, const Shape& of_right) {
    return error_of(ErrorKind::InvalidModel, [&] {
      infer_op("MatMulInteger", 10, {},
               {typed(DataType::UInt8, Shape{2, 3}), typed(DataType::UInt8, Shape{3, 4}),
                typed(DataType::UInt8, of_left), typed(DataType::UInt8, of_right)});
    });
  };
  EXPECT_THAT(error(Shape{2, 3}, Shape{}), HasSubstr("'a_zero_point'"));
  EXPECT_THAT(error(Shape{2, 1}, Shape{3, 4}), HasSubstr("'b_zero_point'"));
  EXPECT_THAT(error(Shape{0}, Shape{}), HasSubstr("one element or 2, found 0"));
}

TEST(QLinearMatMul, RoundsOnce) {
  // The example of the standard, for uint8.
  const std::vector<Tensor> inputs = {
      unsigned_bytes({2, 4}, {208, 236, 0, 238, 3, 214, 255, 29}),
      floats({1}, {0.0066F}),
      unsigned_bytes({1}, {113}),
      unsigned_bytes({4, 3}, {152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247}),
      floats({1}, {0.00705F}),
      unsigned_bytes({1}, {114}),
      floats({1}, {0.0107F}),
      unsigned_bytes({1}, {118})};
  EXPECT_THAT(bytes(run_op("QLinearMatMul", 10, {}, inputs)[0]),
              ElementsAre(168, 115, 255, 1, 66, 151));
}

TEST(QLinearMatMul, HasScalesByRowAndColumn) {
  const std::vector<Tensor> inputs = {unsigned_bytes({2, 1}, {2, 2}),
                                      floats({2}, {1, 2}),
                                      unsigned_bytes({2}, {0, 1}),
                                      signed_bytes({1, 2}, {3, 3}),
                                      floats({2}, {1, 4}),
                                      signed_bytes({2}, {0, 1}),
                                      floats({}, {1}),
                                      unsigned_bytes({}, {0})};
  // Rows 2 and 1, times 1 and 2; columns 3 and 2, times 1 and 4.
  EXPECT_THAT(bytes(run_op("QLinearMatMul", 21, {}, inputs)[0]), ElementsAre(6, 16, 6, 16));
}

TEST(QLinearMatMul, HasScalesByRowOfAProductWithAVector) {
  const std::vector<Tensor> inputs = {unsigned_bytes({3, 2}, {1, 2, 3, 4, 5, 6}),
                                      floats({3}, {1, 2, 3}),
                                      unsigned_bytes({3}, {0, 1, 2}),
                                      unsigned_bytes({2}, {1, 2}),
                                      floats({}, {1}),
                                      unsigned_bytes({}, {0}),
                                      floats({}, {1}),
                                      unsigned_bytes({}, {0})};
  // Rows (1, 2), 2 * (2, 3) and 3 * (3, 4) times (1, 2).
  EXPECT_THAT(bytes(run_op("QLinearMatMul", 10, {}, inputs)[0]), ElementsAre(5, 16, 33));
}

TEST(QLinearMatMul, RefusesScalesByColumnOfAVector) {
  EXPECT_THAT(error_of(ErrorKind::InvalidModel,
                       [] {
                         infer_op("QLinearMatMul", 10, {},
                                  {bytewise({3, 2}), floating({}), bytewise({}), bytewise({2}),
                                   floating({2}), bytewise({}), floating({}), bytewise({})});
                       }),
              HasSubstr("'b_scale'"));
}

TEST(MatMulInteger16, IsExactAndWraps) {
  const Tensor a =
      Tensor::from<uint16_t>(DataType::UInt16, {1, 3}, std::vector<uint16_t>{65535, 65535, 2});
  const Tensor b =
      Tensor::from<int16_t>(DataType::Int16, {3, 1}, std::vector<int16_t>{-32768, 32767, 7});
  // 65535 * -1 + 14.
  EXPECT_THAT(run_microsoft("MatMulInteger16", {}, {a, b})[0].as<int32_t>(), ElementsAre(-65521));
  const Tensor large =
      Tensor::from<uint16_t>(DataType::UInt16, {1, 1}, std::vector<uint16_t>{65535});
  // 65535 squared is 2^32 - 131071.
  const Tensor square = run_microsoft("MatMulInteger16", {}, {large, large})[0];
  EXPECT_THAT(square.as<int32_t>(), ElementsAre(-131071));
}

// A is [[0, 1], [2, 3]] after its zero point, B [[1, -1], [0, 2]].
std::vector<Tensor> float_product() {
  return {unsigned_bytes({2, 2}, {5, 6, 7, 8}),
          signed_bytes({2, 2}, {2, 0, 1, 3}),
          scalar(0.5F),
          scalar(0.25F),
          zero_point(5),
          signed_bytes({}, {1})};
}

TEST(MatMulIntegerToFloat, GivesRealNumbers) {
  std::vector<Tensor> inputs = float_product();
  EXPECT_THAT(values(run_microsoft("MatMulIntegerToFloat", {}, inputs)[0]),
              ElementsAre(0, 0.25F, 0.25F, 0.5F));
  inputs[3] = floats({2}, {0.25F, 2});
  inputs.push_back(floats({1, -1}));
  EXPECT_THAT(values(run_microsoft("MatMulIntegerToFloat", {}, inputs)[0]),
              ElementsAre(1, 1, 1.25F, 3));
}

TEST(MatMulIntegerToFloat, HasScalesByColumnOfBothFactors) {
  std::vector<Tensor> inputs = float_product();
  inputs[2] = floats({2}, {1, 2});
  inputs[4] = unsigned_bytes({2}, {5, 4});
  inputs[3] = scalar(1);
  // A is [[0, 2 * 2], [2, 2 * 4]].
  EXPECT_THAT(values(run_microsoft("MatMulIntegerToFloat", {}, inputs)[0]),
              ElementsAre(0, 8, 2, 14));
}

TEST(MatMulIntegerToFloat, RefusesABiasThatDoesNotFit) {
  EXPECT_THAT(microsoft_refusal("MatMulIntegerToFloat", {},
                                {bytewise({2, 3}), bytewise({3, 4}), floating({}), floating({4}),
                                 bytewise({}), bytewise({}), floating({3})}),
              HasSubstr("'bias'"));
  EXPECT_THAT(microsoft_refusal("MatMulIntegerToFloat", {},
                                {bytewise({2, 3}), bytewise({3, 4}), floating({2}), floating({})}),
              HasSubstr("'a_scale'"));
}

TEST(DynamicQuantizeMatMul, RoundsTheLeftFactor) {
  // The range [-1, 254] has the scale 1 and the zero point 1.
  const Tensor y =
      run_microsoft("DynamicQuantizeMatMul", {},
                    {floats({1, 4}, {-1, 254, 2.5F, 3.5F}), signed_bytes({4, 1}, {1, 0, 10, 100}),
                     scalar(0.5F), Tensor(), floats({7})})[0];
  // (-1 + 20 + 400) / 2 + 7
  EXPECT_THAT(values(y), ElementsAre(216.5F));
}

}  // namespace
}  // namespace tessera::ops
