#include "base/tensor/float16.h"
#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

Attributes quantization(int64_t axis, int64_t block = 0) {
  Attributes attributes;
  attributes.set("axis", axis);
  if (block > 0) attributes.set("block_size", block);
  return attributes;
}

TEST(QuantizeLinear, RoundsTiesToEvenAndSaturates) {
  const Tensor x = floats({1, 3, 5, -1, 1000, -1000, kNan, kInfinity});
  const Tensor y =
      run_op("QuantizeLinear", 21, {}, {x, floats({}, {2}), unsigned_bytes({}, {10})})[0];
  EXPECT_THAT(bytes(y), ElementsAre(10, 12, 12, 10, 255, 0, 0, 255));
  const Tensor small =
      run_op("QuantizeLinear", 21, {}, {x, floats({}, {2}), signed_bytes({}, {-3})})[0];
  EXPECT_THAT(small.as<int8_t>(), ElementsAre(-3, -1, -1, -3, 127, -128, -128, 127));
}

Tensor of_bytes(DataType type, std::vector<int64_t> dims, const std::vector<uint8_t>& bytes) {
  return Tensor::from<uint8_t>(type, std::move(dims), bytes);
}

TEST(QuantizeLinear, SaturatesSmallIntegers) {
  const Tensor x = floats({1, 3, 5, -1, 1000, -1000, kNan, kInfinity});
  const auto quantised = [&](DataType type, uint8_t zero) {
    return run_op("QuantizeLinear", 25, {}, {x, floats({}, {2}), of_bytes(type, {}, {zero})})[0];
  };
  EXPECT_THAT(quantised(DataType::Int4, 0xff).as<int8_t>(),
              ElementsAre(-1, 1, 1, -1, 7, -8, -8, 7));
  EXPECT_THAT(bytes(quantised(DataType::UInt4, 14)), ElementsAre(14, 15, 15, 14, 15, 0, 0, 15));
  EXPECT_THAT(quantised(DataType::Int2, 0).as<int8_t>(), ElementsAre(0, 1, 1, 0, 1, -2, -2, 1));
  EXPECT_THAT(bytes(quantised(DataType::UInt2, 0)), ElementsAre(0, 2, 2, 0, 3, 0, 0, 3));
}

TEST(QuantizeLinear, GivesSmallFloats) {
  const Tensor x = floats({1, -3, 1000, -0.0F});
  Attributes attributes;
  attributes.set("output_dtype", int64_t{17});  // float8e4m3fn
  const std::vector<Tensor> inputs = {x, floats({}, {2})};
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 21, attributes, inputs)[0]),
              ElementsAre(0x30, 0xbc, 0x7e, 0x80));
  attributes.set("saturate", int64_t{0});
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 21, attributes, inputs)[0]),
              ElementsAre(0x30, 0xbc, 0x7f, 0x80));
  attributes.set("output_dtype", int64_t{23});  // float4e2m1 saturates anyhow
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 23, attributes, inputs)[0]),
              ElementsAre(1, 0xb, 7, 8));
  EXPECT_THAT(error_of([&] { run_op("QuantizeLinear", 21, attributes, inputs); }),
              testing::HasSubstr("attribute 'output_dtype': expected int8"));
}

TEST(QuantizeLinear, AddsTheZeroPointOfAFloat) {
  const Tensor zero = of_bytes(DataType::Float8E4M3FN, {}, {0x38});  // 1
  EXPECT_THAT(
      bytes(run_op("QuantizeLinear", 19, {}, {floats({2}, {2, -2}), floats({}, {2}), zero})[0]),
      ElementsAre(0x40, 0));
}

TEST(QuantizeLinear, DividesByPowersOfTwo) {
  const Tensor scales = of_bytes(DataType::Float8E8M0, {2}, {126, 129});  // 1/2, 4
  const Tensor y = run_op("QuantizeLinear", 24, quantization(0),
                          {floats({2, 1}, {3, 3}), scales, unsigned_bytes({2}, {0, 0})})[0];
  EXPECT_THAT(bytes(y), ElementsAre(6, 1));
  EXPECT_THAT(error_of([&] {
                run_op("QuantizeLinear", 23, quantization(0), {floats({2, 1}, {3, 3}), scales});
              }),
              testing::HasSubstr("input 'y_scale': expected elements of"));
}

TEST(DequantizeLinear, TakesSmallTypes) {
  const auto numbers = [](int opset, DataType type, const std::vector<uint8_t>& elements,
                          const Tensor& zero) {
    const auto count = static_cast<int64_t>(elements.size());
    const Tensor y = run_op("DequantizeLinear", opset, {},
                            {of_bytes(type, {count}, elements), floats({}, {2}), zero})[0];
    return std::vector<float>(y.as<float>().begin(), y.as<float>().end());
  };
  EXPECT_THAT(numbers(21, DataType::Int4, {0xf8, 7}, of_bytes(DataType::Int4, {}, {0xff})),
              ElementsAre(-14, 16));
  EXPECT_THAT(numbers(21, DataType::UInt4, {15, 0}, of_bytes(DataType::UInt4, {}, {1})),
              ElementsAre(28, -2));
  EXPECT_THAT(numbers(25, DataType::Int2, {0xfe, 1}, {}), ElementsAre(-4, 2));
  EXPECT_THAT(numbers(25, DataType::UInt2, {3}, {}), ElementsAre(6));
  EXPECT_THAT(numbers(19, DataType::Float8E4M3FN, {0x38, 0xfe}, {}), ElementsAre(2, -896));
  EXPECT_THAT(numbers(23, DataType::Float4E2M1, {3, 0xf}, {}), ElementsAre(3, -12));
}

TEST(DequantizeLinear, OfScalesThatArePowersOfTwoNamesItsType) {
  const std::vector<Tensor> inputs = {of_bytes(DataType::Float4E2M1, {2}, {3, 7}),
                                      of_bytes(DataType::Float8E8M0, {}, {129})};
  EXPECT_THAT(error_of([&] { run_op("DequantizeLinear", 24, {}, inputs); }),
              testing::HasSubstr("input 'x_scale': expected attribute 'output_dtype'"));
  Attributes attributes;
  attributes.set("output_dtype", int64_t{1});
  EXPECT_THAT(run_op("DequantizeLinear", 24, attributes, inputs)[0].as<float>(),
              ElementsAre(6, 24));
}

TEST(QuantizeLinear, TakesAListOfOneScale) {
  const Tensor y = run_op("QuantizeLinear", 13, {},
                          {floats({2, 1}, {3, 4}), floats({1}, {1}), unsigned_bytes({}, {5})})[0];
  EXPECT_THAT(bytes(y), ElementsAre(8, 9));
}

TEST(QuantizeLinear, IsOfBytesWithoutAZeroPoint) {
  const Tensor y = run_op("QuantizeLinear", 10, {}, {floats({3, -1}), floats({}, {1})})[0];
  EXPECT_EQ(y.type(), DataType::UInt8);
  EXPECT_THAT(bytes(y), ElementsAre(3, 0));
  Attributes attributes;
  attributes.set("output_dtype", int64_t{5});  // int16
  EXPECT_EQ(run_op("QuantizeLinear", 21, attributes, {floats({3}), floats({}, {1})})[0].type(),
            DataType::Int16);
}

TEST(QuantizeLinear, HasAScaleForEachIndexOfAnAxis) {
  const Tensor x = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<Tensor> inputs = {x, floats({1, 2}), unsigned_bytes({2}, {0, 100})};
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 13, quantization(1), inputs)[0]),
              ElementsAre(1, 2, 102, 102, 5, 6, 104, 104));
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 13, quantization(-1), inputs)[0]),
              ElementsAre(1, 101, 3, 102, 5, 103, 7, 104));
}

TEST(QuantizeLinear, HasAScaleForEachBlock) {
  const Tensor x = floats({1, 5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(
      bytes(run_op("QuantizeLinear", 21, quantization(1, 2), {x, floats({1, 3}, {1, 2, 5})})[0]),
      ElementsAre(1, 2, 2, 2, 1));
  const Tensor columns = floats({3, 2}, {2, 4, 6, 8, 10, 12});
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 21, quantization(0, 2),
                           {columns, floats({2, 2}, {1, 2, 10, 4})})[0]),
              ElementsAre(2, 2, 6, 4, 1, 3));
}

TEST(QuantizeLinear, DividesInTheTypeOfTheScale) {
  const auto half = [](float value) {
    return Tensor::from<Float16>(DataType::Float16, {}, std::vector{Float16(value)});
  };
  // 0.1 as float16 is 0.09998; 10 / that is 100.02, and 100 in float16 (steps of 0.0625).
  EXPECT_THAT(bytes(run_op("QuantizeLinear", 19, {}, {half(10.05F), half(0.1F)})[0]),
              ElementsAre(100));
}

TEST(DequantizeLinear, SubtractsAndMultiplies) {
  const Tensor x = signed_bytes({3}, {-128, 0, 127});
  EXPECT_THAT(values(run_op("DequantizeLinear", 10, {},
                            {x, floats({}, {0.5F}), signed_bytes({}, {-1})})[0]),
              ElementsAre(-63.5F, 0.5F, 64));
  const Tensor wide =
      Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{-2147483647});
  EXPECT_THAT(values(run_op("DequantizeLinear", 10, {}, {wide, floats({}, {1})})[0]),
              ElementsAre(-2147483648.0F));
  EXPECT_THAT(values(run_op("DequantizeLinear", 13, quantization(0),
                            {signed_bytes({2}, {1, 1}), floats({2, 3})})[0]),
              ElementsAre(2, 3));
}

TEST(DequantizeLinear, UndoesQuantizeLinear) {
  std::vector<uint8_t> all(256);
  for (size_t index = 0; index < all.size(); ++index) all[index] = static_cast<uint8_t>(index);
  const Tensor x = unsigned_bytes({256}, all);
  const Tensor scale = floats({}, {0.037F});
  const Tensor zero = unsigned_bytes({}, {77});
  const Tensor real = run_op("DequantizeLinear", 21, {}, {x, scale, zero})[0];
  EXPECT_EQ(bytes(run_op("QuantizeLinear", 21, {}, {real, scale, zero})[0]), all);
}

TEST(QuantizeLinear, RefusesScalesThatDoNotFit) {
  const auto error = [](const Shape& scales, Attributes attributes) {
    return error_of(ErrorKind::InvalidModel, [&] {
      infer_op("QuantizeLinear", 21, std::move(attributes),
               {typed(DataType::Float32, Shape{2, 3}), typed(DataType::Float32, scales)});
    });
  };
  EXPECT_THAT(error(Shape{2}, quantization(1)), HasSubstr("expected shape [3]"));
  EXPECT_THAT(error(Shape{2, 3}, quantization(1)), HasSubstr("expected shape [3]"));
  EXPECT_THAT(error(Shape{2, 3}, quantization(1, 2)), HasSubstr("expected shape [2x2]"));
  EXPECT_THAT(error(Shape{3}, quantization(2)), HasSubstr("expected an axis"));
  Attributes wrong;
  wrong.set("output_dtype", int64_t{1});
  EXPECT_THAT(error(Shape{}, wrong), HasSubstr("attribute 'output_dtype'"));
}

TEST(QuantizeLinear, OfMicrosoftHasOneScaleOrOneForEachIndex) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 70000});
  const Tensor zero = Tensor::from<uint16_t>(DataType::UInt16, {}, std::vector<uint16_t>{1});
  EXPECT_THAT(run_microsoft("QuantizeLinear", {}, {x, scalar(1), zero})[0].as<uint16_t>(),
              ElementsAre(2, 3, 4, 65535));
  const Tensor zeros = Tensor::from<int16_t>(DataType::Int16, {2}, std::vector<int16_t>{0, 10});
  EXPECT_THAT(run_microsoft("QuantizeLinear", attributes_of({{"axis", 0}}),
                            {x, floats({0.5F, 1}), zeros})[0]
                  .as<int16_t>(),
              ElementsAre(2, 4, 13, 32767));
}

TEST(QuantizeLinear, OfMicrosoftDividesInFloat32) {
  const auto half = [](float value) {
    return Tensor::from<Float16>(DataType::Float16, {}, std::vector{Float16(value)});
  };
  // As float16, 10.05 is 10.0469 and 0.1 is 0.09998: the quotient is 100.49, as float16 100.5.
  EXPECT_THAT(bytes(run_microsoft("QuantizeLinear", {}, {half(10.05F), half(0.1F)})[0]),
              ElementsAre(100));
}

TEST(DequantizeLinear, OfMicrosoftTakes16Bits) {
  const Tensor x = Tensor::from<int16_t>(DataType::Int16, {2}, std::vector<int16_t>{-32768, 9});
  const Tensor zero = Tensor::from<int16_t>(DataType::Int16, {}, std::vector<int16_t>{1});
  EXPECT_THAT(values(run_microsoft("DequantizeLinear", {}, {x, scalar(0.5F), zero})[0]),
              ElementsAre(-16384.5F, 4));
}

}  // namespace
}  // namespace tessera::ops
