#include "ops/signal/fourier_transform.h"

#include <cmath>
#include <numbers>
#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

std::vector<Complex> transformed(std::vector<Complex> signal, FourierDirection direction) {
  const FourierPlan plan(static_cast<int64_t>(signal.size()), direction,
                         *std::pmr::get_default_resource());
  std::vector<Complex> work(static_cast<size_t>(plan.work_length()));
  plan.transform(signal, work);
  return signal;
}

// The definition, in O(n^2).
Complex defined(const std::vector<Complex>& signal, size_t k, FourierDirection direction) {
  const double sign = direction == FourierDirection::Forward ? -1 : 1;
  const size_t length = signal.size();
  Complex sum;
  for (size_t n = 0; n < length; ++n) {
    const double angle = sign * 2 * std::numbers::pi * static_cast<double>(n * k % length) /
                         static_cast<double>(length);
    sum.real += signal[n].real * std::cos(angle) - signal[n].imaginary * std::sin(angle);
    sum.imaginary += signal[n].real * std::sin(angle) + signal[n].imaginary * std::cos(angle);
  }
  if (sign > 0) {
    sum.real /= static_cast<double>(length);
    sum.imaginary /= static_cast<double>(length);
  }
  return sum;
}

std::vector<Complex> drawn_signal(size_t length) {
  std::mt19937 random(static_cast<uint32_t>(length));
  std::uniform_real_distribution<double> numbers(-1, 1);
  std::vector<Complex> signal(length);
  for (Complex& element : signal) element = {numbers(random), numbers(random)};
  return signal;
}

TEST(FourierTransform, IsThatOfTheDefinitionForEachLength) {
  std::vector<size_t> lengths = {121, 169, 343, 400, 401, 512, 625, 1001};
  for (size_t length = 1; length <= 70; ++length) lengths.push_back(length);
  for (const size_t length : lengths) {
    const std::vector<Complex> signal = drawn_signal(length);
    for (const auto direction : {FourierDirection::Forward, FourierDirection::Inverse}) {
      const std::vector<Complex> found = transformed(signal, direction);
      for (size_t k = 0; k < length; k += 1 + length / 100) {
        const Complex expected = defined(signal, k, direction);
        ASSERT_NEAR(found[k].real, expected.real, 1e-12) << length << " at " << k;
        ASSERT_NEAR(found[k].imaginary, expected.imaginary, 1e-12) << length << " at " << k;
      }
    }
  }
}

TEST(FourierTransform, OfALargePrimeLengthAndBackGivesTheSignal) {
  const std::vector<Complex> signal = drawn_signal(10007);
  const std::vector<Complex> found =
      transformed(transformed(signal, FourierDirection::Forward), FourierDirection::Inverse);
  for (size_t n = 0; n < signal.size(); ++n) {
    ASSERT_NEAR(found[n].real, signal[n].real, 1e-12);
    ASSERT_NEAR(found[n].imaginary, signal[n].imaginary, 1e-12);
  }
}

TEST(FourierTransform, OfAnImpulseIsExact) {
  const std::vector<Complex> found =
      transformed({{0, 0}, {1, 0}, {0, 0}, {0, 0}}, FourierDirection::Forward);
  EXPECT_EQ(found[1].real, 0);
  EXPECT_EQ(found[1].imaginary, -1);
  EXPECT_EQ(found[2].real, -1);
  EXPECT_EQ(found[2].imaginary, 0);
}

}  // namespace
}  // namespace tessera::ops
