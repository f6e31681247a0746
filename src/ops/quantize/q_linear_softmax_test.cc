#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes softmax_of(int64_t opset, int64_t axis) {
  return attributes_of({{"opset", opset}, {"axis", axis}});
}

std::vector<Tensor> softmax_inputs(std::vector<int64_t> dims) {
  return {unsigned_bytes(std::move(dims), {0, 10, 20, 30, 5, 5}), scalar(0.1F), zero_point(3),
          scalar(1.0F / 256), zero_point(1)};
}

TEST(QLinearSoftmax, IsOfOneAxisSince13) {
  // exp(0), exp(1), exp(2) and exp(2.5), 1, 1 over their sums, in steps of 1/256 from 1 on.
  EXPECT_THAT(bytes(run_microsoft("QLinearSoftmax", softmax_of(13, -1), softmax_inputs({2, 3}))[0]),
              ElementsAre(24, 64, 171, 221, 19, 19));
  EXPECT_THAT(
      bytes(run_microsoft("QLinearSoftmax", softmax_of(13, 1), softmax_inputs({1, 6, 1}))[0]),
      ElementsAre(8, 21, 56, 150, 13, 13));
}

TEST(QLinearSoftmax, IsOfAllFurtherAxesBefore) {
  EXPECT_THAT(
      bytes(run_microsoft("QLinearSoftmax", softmax_of(12, 1), softmax_inputs({1, 2, 3}))[0]),
      ElementsAre(8, 21, 56, 150, 13, 13));
}

TEST(QLinearSoftmax, WorksOnSignedBytesAndAlongStrides) {
  const std::vector<Tensor> inputs = {signed_bytes({2, 2}, {-128, 127, 127, 127}), scalar(1),
                                      Tensor(), scalar(1.0F / 128), signed_bytes({}, {-128})};
  // Columns: (0, 1) and (1/2, 1/2).
  EXPECT_THAT(run_microsoft("QLinearSoftmax", softmax_of(13, 0), inputs)[0].as<int8_t>(),
              ElementsAre(-128, -64, 0, -64));
}

TEST(QLinearSoftmax, RefusesAxesOutside) {
  const auto refusal = [](int64_t opset, int64_t axis) {
    return microsoft_refusal(
        "QLinearSoftmax", softmax_of(opset, axis),
        {bytewise({2, 3}), floating({}), bytewise({}), floating({}), bytewise({})});
  };
  EXPECT_THAT(refusal(13, 2), HasSubstr("[-2, 2)"));
  EXPECT_EQ(refusal(12, 2), "");
}

}  // namespace
}  // namespace tessera::ops
