#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

Tensor bit_cast(const Tensor& input, int64_t to) {
  return run_op("BitCast", 26, attributes_of({{"to", to}}), {input})[0];
}

TEST(BitCast, KeepsTheBits) {
  const Tensor whole = bit_cast(floats({1, 4}, {1, -2, 0, -0.0F}), 6);
  EXPECT_EQ(whole.dims(), (std::vector<int64_t>{1, 4}));
  const auto zero = static_cast<int32_t>(0x80000000U);
  EXPECT_THAT(whole.as<int32_t>(),
              ElementsAre(0x3f800000, static_cast<int32_t>(0xc0000000U), 0, zero));
  EXPECT_THAT(values(bit_cast(whole, 1)), ElementsAre(1, -2, 0, 0));
  EXPECT_THAT(bit_cast(ints({2}, {INT64_MIN, -1}), 13).as<uint64_t>(),
              ElementsAre(uint64_t{1} << 63, UINT64_MAX));
  const Tensor half =
      bit_cast(run_op("Cast", 13, attributes_of({{"to", 10}}), {floats({1}, {1})})[0], 4);
  EXPECT_THAT(half.as<uint16_t>(), ElementsAre(0x3c00));
}

TEST(BitCast, OfBytesToBoolHasTwoValues) {
  EXPECT_THAT(bytes(bit_cast(bools({3}, {0, 1, 1}), 2)), ElementsAre(0, 1, 1));
  const Tensor input = Tensor::from<uint8_t>(DataType::UInt8, {3}, std::vector<uint8_t>{0, 1, 7});
  EXPECT_THAT(bytes(bit_cast(input, 9)), ElementsAre(0, 1, 1));
}

TEST(BitCast, OfLessThanAByteIsExtended) {
  const auto small = [](DataType type, std::vector<int8_t> elements) {
    return Tensor::from<int8_t>(type, {static_cast<int64_t>(elements.size())}, elements);
  };
  const Tensor unsigned4 = bit_cast(small(DataType::Int4, {-1, -8, 7}), 21);
  EXPECT_EQ(unsigned4.type(), DataType::UInt4);
  EXPECT_THAT(unsigned4.as<int8_t>(), ElementsAre(15, 8, 7));
  EXPECT_THAT(bit_cast(unsigned4, 22).as<int8_t>(), ElementsAre(-1, -8, 7));
  EXPECT_THAT(bit_cast(small(DataType::Int4, {-1}), 23).as<uint8_t>(), ElementsAre(15));
  EXPECT_THAT(bit_cast(small(DataType::UInt2, {3, 1}), 26).as<int8_t>(), ElementsAre(-1, 1));
  EXPECT_THAT(bit_cast(small(DataType::Int8, {-1}), 17).as<uint8_t>(), ElementsAre(255));
}

TEST(BitCast, RefusesTypesOfAnotherSize) {
  const auto refused = [](int64_t to) {
    return refusal("BitCast", 26, attributes_of({{"to", to}}), {floats({1}, {1})});
  };
  EXPECT_THAT(refused(7), HasSubstr("32 bits, like float32, found int64"));
  EXPECT_THAT(refused(8), HasSubstr("found 8 (string)"));
  EXPECT_THAT(refused(77), HasSubstr("found 77"));
  const auto open =
      infer_op("BitCast", 26, attributes_of({{"to", 6}}), {typed(DataType::Float32, std::nullopt)});
  EXPECT_EQ(open[0].type.element, DataType::Int32);
}

}  // namespace
}  // namespace tessera::ops
