#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

// A is [[0, 1], [2, 3]] after its zero point, B [[1, -1], [0, 2]].
std::vector<Tensor> gemm_inputs() {
  return {unsigned_bytes({2, 2}, {5, 6, 7, 8}), scalar(0.5F),  zero_point(5),
          signed_bytes({2, 2}, {2, 0, 1, 3}),   scalar(0.25F), signed_bytes({}, {1})};
}

TEST(QGemm, GivesRealNumbersWithoutAScale) {
  EXPECT_THAT(values(run_microsoft("QGemm", {}, gemm_inputs())[0]),
              ElementsAre(0, 0.25F, 0.25F, 0.5F));
  EXPECT_THAT(values(run_microsoft("QGemm", attributes_of({{"transA", 1}, {"transB", 1}}),
                                   gemm_inputs())[0]),
              ElementsAre(-0.25F, 0.5F, -0.25F, 0.75F));
}

TEST(QGemm, AddsABiasOfIntegersAndRounds) {
  std::vector<Tensor> inputs = gemm_inputs();
  inputs.push_back(Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{10, -4}));
  inputs.push_back(scalar(0.5F));
  inputs.push_back(zero_point(3));
  // (0 + 10, 2 - 4; 2 + 10, 4 - 4) times 2 / 8, in steps of a half: 5, -1, 6 and 0.
  EXPECT_THAT(bytes(run_microsoft("QGemm", attributes_of({{"alpha", 2.0F}}), inputs)[0]),
              ElementsAre(8, 2, 9, 3));
}

TEST(QGemm, HasScalesByColumn) {
  std::vector<Tensor> inputs = gemm_inputs();
  inputs[4] = floats({2}, {0.25F, 2});
  inputs[5] = signed_bytes({2}, {1, 2});
  // The second column of B is (-2, 1).
  EXPECT_THAT(values(run_microsoft("QGemm", {}, inputs)[0]), ElementsAre(0, 1, 0.25F, -1));
}

TEST(QGemm, RefusesWhatDoesNotFit) {
  const auto refusal = [](Shape right, Shape scale, Shape bias) {
    return microsoft_refusal(
        "QGemm", {},
        {bytewise({2, 3}), floating({}), bytewise({}), bytewise(std::move(right)),
         floating(std::move(scale)), bytewise({}), typed(DataType::Int32, std::move(bias))});
  };
  EXPECT_EQ(refusal({3, 4}, {4}, {2, 1}), "");
  EXPECT_THAT(refusal({4, 4}, {}, {}), HasSubstr("expected 3 rows"));
  EXPECT_THAT(refusal({3, 4}, {3}, {}), HasSubstr("'b_scale'"));
  EXPECT_THAT(refusal({3, 4}, {}, {3}), HasSubstr("'C'"));
  EXPECT_THAT(refusal({3}, {}, {}), HasSubstr("expected a matrix"));
  EXPECT_THAT(microsoft_refusal("QGemm", {},
                                {bytewise({2, 3}), floating({}), bytewise({}), bytewise({3, 4}),
                                 floating({}), bytewise({}), InferInput(), floating({})}),
              HasSubstr("or neither"));
}

}  // namespace
}  // namespace tessera::ops
