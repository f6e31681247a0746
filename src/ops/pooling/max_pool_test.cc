#include <limits>
#include <tuple>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes window(std::vector<int64_t> kernel, std::vector<int64_t> strides) {
  return attributes_of({{"kernel_shape", std::move(kernel)}, {"strides", std::move(strides)}});
}

TEST(MaxPool, GivesTheLargestAndItsPlace) {
  const Tensor input = floats({1, 2, 2, 3}, {1, 5, 3, 4, 2, 6, -1, -5, -3, -4, -2, -6});
  const auto outputs = run_op("MaxPool", 12, window({2, 2}, {1, 1}), {input}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(5, 6, -1, -2));
  EXPECT_THAT(outputs[1].as<int64_t>(), ElementsAre(1, 5, 6, 10));
  Attributes column_major = window({2, 2}, {1, 1});
  column_major.set("storage_order", int64_t{1});
  EXPECT_THAT(run_op("MaxPool", 12, column_major, {input}, 2)[1].as<int64_t>(),
              ElementsAre(2, 5, 6, 9));
}

TEST(MaxPool, PaddingNeverWins) {
  Attributes attributes = window({3}, {1});
  attributes.set("pads", std::vector<int64_t>{1, 1});
  EXPECT_THAT(values(run_op("MaxPool", 12, attributes, {floats({1, 1, 3}, {-3, -1, -2})})[0]),
              testing::Each(-1));
}

TEST(MaxPool, BytesArePooledToo) {
  const std::vector<uint8_t> bytes = {200, 3, 4, 255};
  const Tensor input = Tensor::from<uint8_t>(DataType::UInt8, {1, 1, 4}, bytes);
  EXPECT_THAT(run_op("MaxPool", 12, window({2}, {2}), {input})[0].as<uint8_t>(),
              ElementsAre(200, 255));
}

TEST(MaxPool, AWindowThatStartsInThePaddingAtTheEndIsDropped) {
  Attributes attributes = window({1}, {2});
  attributes.set("ceil_mode", int64_t{1});
  EXPECT_THAT(values(run_op("MaxPool", 12, attributes, {floats({1, 1, 2}, {1, 2})})[0]),
              ElementsAre(1));
  EXPECT_THAT(values(run_op("MaxPool", 12, attributes, {floats({1, 1, 3}, {1, 2, 3})})[0]),
              ElementsAre(1, 3));
}

// The padding is too large to iterate over, so only taps inside the input may be visited.
TEST(MaxPool, AHugeWindowOnHugePaddingEndsAtOnce) {
  Attributes attributes = window({2147483647, 2147483647}, {1, 1});
  attributes.set("pads", std::vector<int64_t>{1073741823, 1073741823, 1073741823, 1073741823});
  EXPECT_THAT(values(run_op("MaxPool", 12, attributes, {floats({1, 1, 1, 1}, {7})})[0]),
              ElementsAre(7));
}

TEST(MaxPool, AWindowLargerThanThePaddedInputIsRefused) {
  EXPECT_THROW(
      infer_op("MaxPool", 12, window({6}, {1}), {typed(DataType::Float32, Shape{1, 1, 4})}), Error);
}

// As in ONNX's formula, which other runtimes follow.
TEST(MaxPool, GivesNothingWhereTheFormulaGivesNoWindow) {
  for (const auto& [length, kernel, stride] :
       {std::tuple(4, 5, 1), std::tuple(4, 7, 3), std::tuple(0, 1, 1), std::tuple(0, 9, 1)}) {
    const auto outputs = infer_op("MaxPool", 12, window({kernel}, {stride}),
                                  {typed(DataType::Float32, Shape{2, 1, length})});
    EXPECT_EQ(*outputs[0].type.shape, (Shape{2, 1, 0})) << length << " " << kernel;
  }
  Attributes same = window({3}, {1});
  same.set("auto_pad", "SAME_UPPER");
  EXPECT_EQ(run_op("MaxPool", 12, same, {floats({1, 1, 0}, {})})[0].dims(),
            (std::vector<int64_t>{1, 1, 0}));
}

TEST(MaxPool, FindsNothingInPaddingAlone) {
  Attributes attributes = window({1}, {1});
  attributes.set("pads", std::vector<int64_t>{1, 1});
  attributes.set("storage_order", int64_t{1});
  const auto outputs = run_op("MaxPool", 12, attributes, {floats({1, 1, 0}, {})}, 2);
  EXPECT_THAT(values(outputs[0]), testing::Each(-std::numeric_limits<float>::infinity()));
  EXPECT_THAT(outputs[1].as<int64_t>(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace tessera::ops
