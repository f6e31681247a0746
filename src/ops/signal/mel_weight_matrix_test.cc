#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<Tensor> mel_inputs(int64_t bands, int64_t length, int64_t sample_rate, float lower,
                               float upper) {
  return {ints({}, {bands}), ints({}, {length}), ints({}, {sample_rate}), floats({}, {lower}),
          floats({}, {upper})};
}

// The example of ONNX: 8 bands of 16 points at 8192 hertz up to 4096.
TEST(MelWeightMatrix, HasATriangleForEachBand) {
  const Tensor matrix = run_op("MelWeightMatrix", 17, {}, mel_inputs(8, 16, 8192, 0, 4096))[0];
  ASSERT_EQ(matrix.dims(), (std::vector<int64_t>{9, 8}));
  const std::vector<float> expected = {1, 1, 0, 0, 0, 0, 0, 0,  //
                                       0, 0, 1, 1, 0, 0, 0, 0,  //
                                       0, 0, 0, 0, 1, 0, 0, 0,  //
                                       0, 0, 0, 0, 0, 1, 0, 0,  //
                                       0, 0, 0, 0, 0, 0, 1, 0,  //
                                       0, 0, 0, 0, 0, 0, 0, 1,  //
                                       0, 0, 0, 0, 0, 0, 0, 0,  //
                                       0, 0, 0, 0, 0, 0, 0, 0,  //
                                       0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(values(matrix), expected);
}

// Two bands, equal steps of 1/4 of mel(4000) = 2146.06: corners at 0, 426.8, 1113.9 and 2220.1
// hertz, which are bins 0, 1, 4 and 9 of 33 points at 8000 hertz.
TEST(MelWeightMatrix, RisesToTheCenterAndFallsBehind) {
  const Tensor matrix = run_op("MelWeightMatrix", 17, {}, mel_inputs(2, 32, 8000, 0, 4000))[0];
  ASSERT_EQ(matrix.dims(), (std::vector<int64_t>{17, 2}));
  const std::vector<float> found = values(matrix);
  std::vector<float> first;
  std::vector<float> second;
  for (size_t bin = 0; bin < 10; ++bin) {
    first.push_back(found[2 * bin]);
    second.push_back(found[2 * bin + 1]);
  }
  const float third = 1.0F / 3;
  EXPECT_THAT(first, ElementsAre(0, 1, 2 * third, third, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(second, ElementsAre(0, 0, third, 2 * third, 1, 0.8F, 0.6F, 0.4F, 0.2F, 0));
}

TEST(MelWeightMatrix, HasTheTypeOfTheAttributeAndMayBeEmpty) {
  const Tensor whole = run_op("MelWeightMatrix", 17, attributes_of({{"output_datatype", 7}}),
                              mel_inputs(2, 32, 8000, 0, 4000))[0];
  EXPECT_EQ(integers(whole)[2], 1);
  EXPECT_EQ(integers(whole)[4], 0) << "2/3 is truncated";
  const Tensor empty = run_op("MelWeightMatrix", 17, {}, mel_inputs(0, 32, 8000, 0, 4000))[0];
  EXPECT_EQ(empty.dims(), (std::vector<int64_t>{17, 0}));
  const Tensor zeros = run_op("MelWeightMatrix", 17, {}, mel_inputs(2, 32, 8000, 4000, 0))[0];
  EXPECT_THAT(values(zeros), testing::Each(0.0F));
}

TEST(MelWeightMatrix, RefusesWhatLeavesTheSpectrum) {
  const auto refused = [](const std::vector<Tensor>& inputs) {
    return refusal("MelWeightMatrix", 17, {}, inputs);
  };
  EXPECT_THAT(refused(mel_inputs(2, 32, 8000, 0, 8000)), HasSubstr("the 17 bins"));
  EXPECT_THAT(refused(mel_inputs(2, 32, 8000, -1, 4000)), HasSubstr("the 17 bins"));
  EXPECT_THAT(refused(mel_inputs(2, 32, 8000, kNan, 4000)), HasSubstr("the 17 bins"));
  EXPECT_THAT(refused(mel_inputs(2, 32, 8000, 0, kInfinity)), HasSubstr("the 17 bins"));
  EXPECT_THAT(refused(mel_inputs(2, 32, 0, 0, 1)), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refused(mel_inputs(2, 0, 8000, 0, 1)), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refused(mel_inputs(-1, 32, 8000, 0, 1)), HasSubstr("at least 0, found -1"));
}

}  // namespace
}  // namespace tessera::ops
