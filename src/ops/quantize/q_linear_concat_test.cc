#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes along(int64_t axis) { return attributes_of({{"axis", axis}}); }

TEST(QLinearConcat, BringsPartsToOneScale) {
  const std::vector<Tensor> inputs = {
      scalar(0.5F),  zero_point(10), unsigned_bytes({2, 1}, {3, 200}),
      scalar(1),     zero_point(2),  unsigned_bytes({2, 2}, {10, 11, 12, 13}),
      scalar(0.25F), zero_point(10)};
  const Tensor joined = run_microsoft("QLinearConcat", along(-1), inputs)[0];
  EXPECT_EQ(joined.dims()[1], 3);
  // 1 and 198; then 0, a quarter, a half and three quarters.
  EXPECT_THAT(bytes(joined), ElementsAre(12, 10, 10, 255, 11, 12));
}

TEST(QLinearConcat, RefusesPartsThatDoNotFit) {
  const auto refusal = [](Shape second, DataType type, int64_t axis) {
    return microsoft_refusal(
        "QLinearConcat", along(axis),
        {floating({}), bytewise({}), bytewise({2, 3}), floating({}), bytewise({}),
         typed(type, std::move(second)), floating({}), typed(type, Shape{})});
  };
  EXPECT_EQ(refusal({2, 5}, DataType::UInt8, 1), "");
  EXPECT_THAT(refusal({3, 3}, DataType::UInt8, 1), HasSubstr("except along axis 1"));
  EXPECT_THAT(refusal({2}, DataType::UInt8, 1), HasSubstr("expected rank 2"));
  EXPECT_THAT(refusal({2, 5}, DataType::Int8, 1), HasSubstr("expected elements of uint8"));
  EXPECT_THAT(refusal({2, 5}, DataType::UInt8, 2), HasSubstr("[-2, 2)"));
  EXPECT_THAT(microsoft_refusal("QLinearConcat", along(0),
                                {floating({}), bytewise({}), bytewise({2}), floating({})}),
              HasSubstr("three for each part, found 4"));
}

TEST(QLinearConcat, AddsSymbols) {
  const auto outputs = infer_microsoft(
      "QLinearConcat", along(0),
      {floating({}), bytewise({}), bytewise({Dim::symbol("n"), Dim(3)}), floating({}), bytewise({}),
       bytewise({Dim(2), Dim::symbol("m")}), floating({}), bytewise({})});
  EXPECT_EQ(text(*outputs[0].type.shape), text(Shape{add(Dim::symbol("n"), Dim(2)), Dim(3)}));
}

TEST(QLinearWhere, ChoosesAndBringsToOneScale) {
  const std::vector<Tensor> inputs = {bools({2, 1}, {1, 0}),
                                      unsigned_bytes({2}, {4, 6}),
                                      scalar(1),
                                      zero_point(4),
                                      unsigned_bytes({}, {8}),
                                      scalar(0.5F),
                                      zero_point(0),
                                      scalar(2),
                                      zero_point(7)};
  // 0 and 2 where true, 4 where false, in steps of 2 from 7 on.
  EXPECT_THAT(bytes(run_microsoft("QLinearWhere", {}, inputs)[0]), ElementsAre(7, 8, 9, 9));
}

TEST(QLinearWhere, RefusesShapesThatDoNotBroadcast) {
  EXPECT_THAT(
      microsoft_refusal("QLinearWhere", {},
                        {typed(DataType::Bool, Shape{2}), bytewise({3}), floating({}), bytewise({}),
                         bytewise({}), floating({}), bytewise({}), floating({}), bytewise({})}),
      HasSubstr("input 'X'"));
}

}  // namespace
}  // namespace tessera::ops
