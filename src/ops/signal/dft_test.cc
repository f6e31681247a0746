#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

using testing::Matcher;

std::vector<Matcher<float>> near_all(const std::vector<float>& expected) {
  std::vector<Matcher<float>> matchers;
  for (const float value : expected) matchers.push_back(FloatNear(value, 1e-5F));
  return matchers;
}

Tensor run_dft_op(int opset, std::initializer_list<NamedAttribute> given,
                  const std::vector<Tensor>& inputs) {
  return run_op("DFT", opset, attributes_of(given), inputs)[0];
}

const Tensor kDftRamp = floats({1, 4, 1}, {1, 2, 3, 4});
// Of 1, 2, 3, 4.
const std::vector<float> kDftRampSpectrum = {10, 0, -2, 2, -2, 0, -2, -2};

TEST(Dft, TransformsRealAndComplexSignals) {
  for (const int opset : {17, 20}) {
    const Tensor spectrum = run_dft_op(opset, {}, {kDftRamp});
    EXPECT_EQ(spectrum.dims(), (std::vector<int64_t>{1, 4, 2}));
    EXPECT_THAT(values(spectrum), testing::ElementsAreArray(near_all(kDftRampSpectrum)));
    const Tensor complex = floats({1, 4, 2}, {1, 0, 2, 0, 3, 0, 4, 0});
    EXPECT_THAT(values(run_dft_op(opset, {}, {complex})),
                testing::ElementsAreArray(near_all(kDftRampSpectrum)));
    const Tensor back = run_dft_op(opset, {{"inverse", 1}}, {spectrum});
    EXPECT_THAT(values(back), testing::ElementsAreArray(near_all({1, 0, 2, 0, 3, 0, 4, 0})));
  }
}

TEST(Dft, OfOneSideIsHalfASpectrumAndComesBackReal) {
  const Tensor half = run_dft_op(20, {{"onesided", 1}}, {kDftRamp});
  EXPECT_EQ(half.dims(), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_THAT(values(half), testing::ElementsAreArray(near_all({10, 0, -2, 2, -2, 0})));
  const Tensor back = run_dft_op(20, {{"onesided", 1}, {"inverse", 1}}, {half});
  EXPECT_EQ(back.dims(), (std::vector<int64_t>{1, 4, 1}));
  EXPECT_THAT(values(back), testing::ElementsAreArray(near_all({1, 2, 3, 4})));
}

// NumPy: irfft([1, 2+1j, 3-1j], 5) and irfft([1+5j, 2+1j, 3-1j], 3).
TEST(Dft, BackToAGivenLengthReadsHalfOfItsBins) {
  const Tensor half = floats({1, 3, 2}, {1, 0, 2, 1, 3, -1});
  const Tensor back = run_dft_op(20, {{"onesided", 1}, {"inverse", 1}}, {half, ints({}, {5})});
  EXPECT_THAT(values(back), testing::ElementsAreArray(
                                near_all({2.2F, -0.668915F, -0.691930F, 0.539144F, -0.378298F})));
  const Tensor imaginary = floats({1, 3, 2}, {1, 5, 2, 1, 3, -1});
  const Tensor cut = run_dft_op(20, {{"onesided", 1}, {"inverse", 1}}, {imaginary, ints({}, {3})});
  EXPECT_THAT(values(cut), testing::ElementsAreArray(near_all({1.666667F, -0.910684F, 0.244017F})));
}

TEST(Dft, ALengthCutsTheSignalOrAddsZeros) {
  const Tensor cut = run_dft_op(20, {}, {kDftRamp, ints({}, {2})});
  EXPECT_THAT(values(cut), testing::ElementsAreArray(near_all({3, 0, -1, 0})));
  const Tensor longer = run_dft_op(20, {{"onesided", 1}}, {kDftRamp, ints({1}, {5})});
  EXPECT_EQ(longer.dims(), (std::vector<int64_t>{1, 3, 2}));
  // NumPy: rfft([1, 2, 3, 4], 5).
  EXPECT_THAT(
      values(longer),
      testing::ElementsAreArray(near_all({10, 0, -4.045085F, -1.314328F, 1.545085F, -2.126627F})));
  const Tensor empty = run_dft_op(20, {}, {floats({1, 0, 1}, {}), ints({}, {2})});
  EXPECT_THAT(values(empty), ElementsAre(0, 0, 0, 0));
}

TEST(Dft, RunsAlongTheAxis) {
  const Tensor rows = floats({2, 2, 1}, {1, 2, 3, 5});
  const std::vector<float> along_first = {4, 0, 7, 0, -2, 0, -3, 0};
  const std::vector<float> along_second = {3, 0, -1, 0, 8, 0, -2, 0};
  EXPECT_THAT(values(run_dft_op(17, {{"axis", 0}}, {rows})),
              testing::ElementsAreArray(near_all(along_first)));
  EXPECT_THAT(values(run_dft_op(17, {{"axis", -2}}, {rows})),
              testing::ElementsAreArray(near_all(along_second)));
  EXPECT_THAT(values(run_dft_op(20, {}, {rows, Tensor(), ints({}, {0})})),
              testing::ElementsAreArray(near_all(along_first)));
  EXPECT_THAT(values(run_dft_op(20, {}, {rows})),
              testing::ElementsAreArray(near_all(along_second)));
}

TEST(Dft, RoundsEachTypeOnce) {
  for (const int64_t type : {10, 11, 16}) {
    const auto cast = [](const Tensor& tensor, int64_t to) {
      return run_op("Cast", 13, attributes_of({{"to", to}}), {tensor})[0];
    };
    const Tensor spectrum = run_dft_op(20, {}, {cast(kDftRamp, type)});
    EXPECT_EQ(values(cast(spectrum, 1)), kDftRampSpectrum) << type;
  }
}

TEST(Dft, RefusesWhatIsNoTransform) {
  const Tensor complex = floats({1, 2, 2}, {1, 0, 2, 0});
  EXPECT_THAT(refusal("DFT", 20, attributes_of({{"onesided", 1}}), {complex}),
              HasSubstr("expected a real signal"));
  EXPECT_THAT(refusal("DFT", 20, attributes_of({{"onesided", 1}, {"inverse", 1}}), {kDftRamp}),
              HasSubstr("expected a complex spectrum"));
  EXPECT_THAT(refusal("DFT", 20, {}, {floats({1, 4}, {1, 2, 3, 4})}),
              HasSubstr("last dimension of 1 (real) or 2 (complex), found 4"));
  EXPECT_THAT(refusal("DFT", 20, {}, {floats({2}, {1, 2})}), HasSubstr("found shape 2"));
  EXPECT_THAT(refusal("DFT", 17, attributes_of({{"axis", 2}}), {kDftRamp}),
              HasSubstr("the axis of real and imaginary parts"));
  EXPECT_THAT(refusal("DFT", 20, {}, {kDftRamp, Tensor(), ints({}, {-1})}),
              HasSubstr("the axis of real and imaginary parts"));
  EXPECT_THAT(refusal("DFT", 20, {}, {kDftRamp, Tensor(), ints({}, {5})}), HasSubstr("[-3, 3)"));
  EXPECT_THAT(refusal("DFT", 20, {}, {kDftRamp, ints({}, {0})}), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refusal("DFT", 20, {}, {kDftRamp, ints({2}, {4, 4})}), HasSubstr("one element"));
  EXPECT_THAT(refusal("DFT", 20, attributes_of({{"onesided", 1}, {"inverse", 1}}),
                      {floats({1, 1, 2}, {1, 0})}),
              HasSubstr("at least 1 element"));
}

TEST(Dft, KeepsSymbols) {
  const Dim batch = Dim::symbol("batch");
  const Dim time = Dim::symbol("time");
  const InferInput input = typed(DataType::Float32, Shape{batch, time, 1});
  EXPECT_EQ(shape_text(infer_op("DFT", 20, {}, {input})), "float32 batchxtimex2");
  const auto half = infer_op("DFT", 20, attributes_of({{"onesided", 1}}), {input, followed({4})});
  EXPECT_EQ(shape_text(half), "float32 batchx3x2");
  const auto open = infer_op("DFT", 20, {}, {input, InferInput{}, unknown_list(1)});
  EXPECT_EQ(open[0].type.shape->size(), 3U);
  EXPECT_FALSE(infer_op("DFT", 20, {}, {typed(DataType::Float32, std::nullopt)})[0].type.shape);
}

// --- com.microsoft -------------------------------------------------------------------------------

Tensor run_real_transform(const std::string& op, const Tensor& input) {
  Attributes attributes = attributes_of({{"signal_ndim", 1}});
  const Node node = make_node(all_ops(), op, 1, attributes, {true}, 1, "com.microsoft");
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, std::vector<Tensor>{input}, pool)[0];
}

TEST(Rfft, IsTheSpectrumOfTheLastAxisAndIrfftItsInverse) {
  const Tensor signal = floats({2, 4}, {1, 2, 3, 4, 1, 0, 0, 0});
  const Tensor spectrum = run_real_transform("Rfft", signal);
  EXPECT_EQ(spectrum.dims(), (std::vector<int64_t>{2, 3, 2}));
  EXPECT_THAT(values(spectrum),
              testing::ElementsAreArray(near_all({10, 0, -2, 2, -2, 0, 1, 0, 1, 0, 1, 0})));
  const Tensor back = run_real_transform("Irfft", spectrum);
  EXPECT_EQ(back.dims(), (std::vector<int64_t>{2, 4}));
  EXPECT_THAT(values(back), testing::ElementsAreArray(near_all({1, 2, 3, 4, 1, 0, 0, 0})));
}

TEST(Rfft, RefusesOtherShapes) {
  EXPECT_TRUE(thrown_by([] { run_real_transform("Rfft", floats({2, 0}, {})); }));
  EXPECT_TRUE(thrown_by([] { run_real_transform("Irfft", floats({2, 3}, {1, 2, 3, 4, 5, 6})); }));
  EXPECT_TRUE(thrown_by([] { run_real_transform("Irfft", floats({1, 2}, {1, 2})); }));
}

}  // namespace
}  // namespace tessera::ops
