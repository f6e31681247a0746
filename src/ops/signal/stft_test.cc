#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<float> rounded_spectra(const Tensor& tensor) {
  std::vector<float> result = values(tensor);
  for (float& value : result) value = std::round(value * 1e4F) / 1e4F;
  return result;
}

const Tensor kStftSamples = floats({1, 6, 1}, {1, 2, 3, 4, 5, 6});

// Expected values: numpy.fft of the frames.
TEST(Stft, TransformsEachFrameTimesTheWindow) {
  const Tensor spectra =
      run_op("STFT", 17, {}, {kStftSamples, ints({}, {2}), floats({3}, {1, 2, 1})})[0];
  EXPECT_EQ(spectra.dims(), (std::vector<int64_t>{1, 2, 2, 2}));
  EXPECT_THAT(rounded_spectra(spectra), ElementsAre(8, 0, -2.5F, -0.866F, 16, 0, -3.5F, -2.5981F));
}

TEST(Stft, TakesALengthInsteadOfAWindow) {
  const Tensor window = floats({3}, {1, 1, 1});
  const auto of_window = run_op("STFT", 17, {}, {kStftSamples, ints({}, {2}), window});
  const auto of_length =
      run_op("STFT", 17, {}, {kStftSamples, ints({}, {2}), Tensor(), ints({}, {3})});
  const auto of_both = run_op("STFT", 17, {}, {kStftSamples, ints({}, {2}), window, ints({}, {3})});
  EXPECT_EQ(values(of_window[0]), values(of_length[0]));
  EXPECT_EQ(values(of_both[0]), values(of_length[0]));
  // Without both, the signal is one frame.
  EXPECT_EQ(run_op("STFT", 17, {}, {kStftSamples, ints({}, {2})})[0].dims(),
            (std::vector<int64_t>{1, 1, 4, 2}));
}

TEST(Stft, TransformsComplexSignals) {
  const Tensor signal = floats({1, 6, 2}, {1, 6, 2, 5, 3, 4, 4, 3, 5, 2, 6, 1});
  const Tensor spectra = run_op("STFT", 17, attributes_of({{"onesided", 0}}),
                                {signal, ints({}, {2}), Tensor(), ints({}, {3})})[0];
  EXPECT_EQ(spectra.dims(), (std::vector<int64_t>{1, 2, 3, 2}));
  EXPECT_THAT(rounded_spectra(spectra), ElementsAre(6, 15, -0.634F, 2.366F, -2.366F, 0.634F,  //
                                                    12, 9, -0.634F, 2.366F, -2.366F, 0.634F));
}

TEST(Stft, TakesSignalsOfPytorch) {
  const auto found = run_op(
      "STFT", 17, {}, {floats({1, 6}, {1, 2, 3, 4, 5, 6}), ints({}, {2}), Tensor(), ints({}, {3})});
  EXPECT_EQ(found[0].dims(), (std::vector<int64_t>{1, 2, 2, 2}));
}

TEST(Stft, RefusesWhatHasNoFrames) {
  const auto refused = [](const Tensor& signal, int64_t step, const Tensor& window,
                          const Tensor& length, int64_t onesided = 1) {
    return refusal("STFT", 17, attributes_of({{"onesided", onesided}}),
                   {signal, ints({}, {step}), window, length});
  };
  EXPECT_THAT(refused(kStftSamples, 0, {}, ints({}, {3})), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refused(kStftSamples, 1, {}, ints({}, {0})), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refused(kStftSamples, 1, {}, ints({}, {7})),
              HasSubstr("one frame (7 elements), found 6"));
  EXPECT_THAT(refused(kStftSamples, 1, floats({2}, {1, 1}), ints({}, {3})),
              HasSubstr("a window of 3 elements, found 2"));
  EXPECT_THAT(refused(floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), 1, {}, {}),
              HasSubstr("1 (real) or 2 (complex), found shape 1x2x3"));
  EXPECT_THAT(refused(floats({1, 3, 2}, {1, 2, 3, 4, 5, 6}), 1, {}, {}),
              HasSubstr("expected a real signal"));
  EXPECT_THAT(refused(floats({1, 0, 1}, {}), 1, {}, {}), HasSubstr("at least 1 element"));
}

TEST(Stft, KeepsSymbols) {
  const Shape signal = {Dim::symbol("batch"), Dim::symbol("time"), 1};
  const auto found =
      infer_op("STFT", 17, {},
               {typed(DataType::Float32, signal), followed({160}), InferInput{}, followed({400})});
  EXPECT_EQ(found[0].type.shape->at(0), Dim::symbol("batch"));
  EXPECT_EQ(found[0].type.shape->at(2), Dim(201));
  EXPECT_EQ(found[0].type.shape->size(), 4U);
  const auto open =
      infer_op("STFT", 17, {}, {typed(DataType::Float32, std::nullopt), unknown_list(1)});
  EXPECT_EQ(open[0].type.shape->at(3), Dim(2));
}

}  // namespace
}  // namespace tessera::ops
