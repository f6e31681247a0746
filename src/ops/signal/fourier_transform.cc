#include "ops/signal/fourier_transform.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace tessera::ops {
namespace {

Complex operator+(Complex left, Complex right) {
  return {left.real + right.real, left.imaginary + right.imaginary};
}
Complex operator-(Complex left, Complex right) {
  return {left.real - right.real, left.imaginary - right.imaginary};
}
Complex operator*(Complex left, Complex right) {
  return {left.real * right.real - left.imaginary * right.imaginary,
          left.real * right.imaginary + left.imaginary * right.real};
}
Complex operator*(Complex left, double right) {
  return {left.real * right, left.imaginary * right};
}
Complex conjugate(Complex value) { return {value.real, -value.imaginary}; }
Complex times_i(Complex value) { return {-value.imaginary, value.real}; }

// exp(-2 pi i k / n), or + of the inverse, for 0 <= k < n. The angle is reduced to an eighth of the
// circle in integers, so that quarters of the circle are exact.
Complex root_of_unity(int64_t k, int64_t n, FourierDirection direction) {
  int64_t eighths = 8 * k;  // of n-ths of the circle
  const bool is_below = eighths > 4 * n;
  if (is_below) eighths = 8 * n - eighths;
  const bool is_left = eighths > 2 * n;
  if (is_left) eighths = 4 * n - eighths;
  const bool is_steep = eighths > n;
  if (is_steep) eighths = 2 * n - eighths;
  const double angle =
      std::numbers::pi / 4 * (static_cast<double>(eighths) / static_cast<double>(n));
  double real = std::cos(angle);
  double imaginary = std::sin(angle);
  if (is_steep) std::swap(real, imaginary);
  if (is_left) real = -real;
  if (is_below != (direction == FourierDirection::Forward)) imaginary = -imaginary;
  return {real, imaginary};
}

// One pass: `count` groups of transforms of the pass's radix, on `stride` interleaved signals.
// Element j of group g of signal q is source[q + stride * (g + j * count)]; element k of the result
// is target[q + stride * (radix * g + k)], multiplied by roots[k * g * stride].
struct Pass {
  int64_t stride = 1;
  int64_t count = 1;
  std::span<const Complex> roots;
  const Complex* source = nullptr;
  Complex* target = nullptr;

  Complex root(int64_t index) const { return roots[static_cast<size_t>(index)]; }
};

void run_radix_2(const Pass& pass) {
  const int64_t jump = pass.stride * pass.count;
  for (int64_t group = 0; group < pass.count; ++group) {
    const Complex root = pass.root(group * pass.stride);
    const Complex* source = pass.source + group * pass.stride;
    Complex* target = pass.target + 2 * group * pass.stride;
    for (int64_t signal = 0; signal < pass.stride; ++signal) {
      const Complex first = source[signal];
      const Complex second = source[signal + jump];
      target[signal] = first + second;
      target[signal + pass.stride] = (first - second) * root;
    }
  }
}

void run_radix_4(const Pass& pass) {
  const int64_t stride = pass.stride;
  const int64_t jump = stride * pass.count;
  const double quarter = pass.root(jump).imaginary;  // -1, or 1 of the inverse
  for (int64_t group = 0; group < pass.count; ++group) {
    const std::array<Complex, 3> roots = {pass.root(group * stride), pass.root(2 * group * stride),
                                          pass.root(3 * group * stride)};
    const Complex* source = pass.source + group * stride;
    Complex* target = pass.target + 4 * group * stride;
    for (int64_t signal = 0; signal < stride; ++signal) {
      const Complex first = source[signal];
      const Complex second = source[signal + jump];
      const Complex third = source[signal + 2 * jump];
      const Complex fourth = source[signal + 3 * jump];
      const Complex even_sum = first + third;
      const Complex even_difference = first - third;
      const Complex odd_sum = second + fourth;
      const Complex odd_difference = times_i(second - fourth) * quarter;
      target[signal] = even_sum + odd_sum;
      target[signal + stride] = (even_difference + odd_difference) * roots[0];
      target[signal + 2 * stride] = (even_sum - odd_sum) * roots[1];
      target[signal + 3 * stride] = (even_difference - odd_difference) * roots[2];
    }
  }
}

// The transform of an odd number of elements, by sums and differences of x[j] and x[radix - j],
// whose roots are conjugate. `circle` has the roots of the radix.
template <int kRadix>
std::array<Complex, kRadix> odd_transform(const std::array<Complex, kRadix>& x,
                                          const std::array<Complex, kRadix>& circle) {
  constexpr int kHalf = kRadix / 2;
  std::array<Complex, kHalf> sums;
  std::array<Complex, kHalf> differences;
  std::array<Complex, kRadix> y;
  y[0] = x[0];
  for (int j = 0; j < kHalf; ++j) {
    sums[j] = x[j + 1] + x[kRadix - 1 - j];
    differences[j] = x[j + 1] - x[kRadix - 1 - j];
    y[0] = y[0] + sums[j];
  }
  for (int k = 1; k <= kHalf; ++k) {
    Complex even = x[0];
    Complex odd;
    for (int j = 0; j < kHalf; ++j) {
      const Complex root = circle[(j + 1) * k % kRadix];
      even = even + sums[j] * root.real;
      odd = odd + differences[j] * root.imaginary;
    }
    y[k] = even + times_i(odd);
    y[kRadix - k] = even - times_i(odd);
  }
  return y;
}

template <int kRadix>
void run_odd_radix(const Pass& pass) {
  const int64_t stride = pass.stride;
  const int64_t jump = stride * pass.count;
  std::array<Complex, kRadix> circle;
  for (int k = 0; k < kRadix; ++k) circle[k] = pass.root(k * jump);
  std::array<Complex, kRadix> roots;
  std::array<Complex, kRadix> elements;
  for (int64_t group = 0; group < pass.count; ++group) {
    for (int k = 0; k < kRadix; ++k) roots[k] = pass.root(k * group * stride);
    const Complex* source = pass.source + group * stride;
    Complex* target = pass.target + kRadix * group * stride;
    for (int64_t signal = 0; signal < stride; ++signal) {
      for (int j = 0; j < kRadix; ++j) elements[j] = source[signal + j * jump];
      const std::array<Complex, kRadix> result = odd_transform<kRadix>(elements, circle);
      for (int k = 0; k < kRadix; ++k) target[signal + k * stride] = result[k] * roots[k];
    }
  }
}

struct RadixRow {
  int64_t radix;
  void (*run)(const Pass& pass);
};

// In the order in which a length is divided by them.
constexpr std::array kRadices = {RadixRow{4, run_radix_4},       RadixRow{2, run_radix_2},
                                 RadixRow{3, run_odd_radix<3>},  RadixRow{5, run_odd_radix<5>},
                                 RadixRow{7, run_odd_radix<7>},  RadixRow{11, run_odd_radix<11>},
                                 RadixRow{13, run_odd_radix<13>}};

int64_t padded_length(int64_t length) {
  if (RadixPlan::is_possible(length)) return length;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
}

}  // namespace

bool RadixPlan::is_possible(int64_t length) {
  for (const RadixRow& row : kRadices) {
    while (length % row.radix == 0) length /= row.radix;
  }
  return length == 1;
}

RadixPlan::RadixPlan(int64_t length, FourierDirection direction, std::pmr::memory_resource& memory)
    : length_(length), roots_(&memory) {
  size_t count = 0;
  for (const RadixRow& row : kRadices) {
    for (; length % row.radix == 0; length /= row.radix) {
      radices_[count++] = static_cast<int8_t>(row.radix);
    }
  }
  roots_.resize(static_cast<size_t>(length_));
  for (int64_t k = 0; k < length_; ++k) {
    roots_[static_cast<size_t>(k)] = root_of_unity(k, length_, direction);
  }
}

void RadixPlan::transform(std::span<Complex> signal, std::span<Complex> work) const {
  Pass pass = {.roots = roots_, .source = signal.data(), .target = work.data()};
  int64_t left = length_;
  for (const int8_t radix : radices_) {
    if (radix == 0) break;
    left /= radix;
    pass.count = left;
    std::ranges::find(kRadices, radix, &RadixRow::radix)->run(pass);
    pass.stride *= radix;
    pass.source = pass.target;
    pass.target = pass.target == work.data() ? signal.data() : work.data();
  }
  if (pass.source != signal.data()) std::ranges::copy(work.first(signal.size()), signal.begin());
}

FourierPlan::FourierPlan(int64_t length, FourierDirection direction,
                         std::pmr::memory_resource& memory)
    : length_(length),
      direction_(direction),
      padded_(padded_length(length)),
      radix_(padded_, padded_ == length ? direction : FourierDirection::Forward, memory),
      chirp_(&memory),
      chirp_spectrum_(&memory) {
  if (padded_ == length_) return;
  const auto size = static_cast<size_t>(length);
  chirp_.resize(size);
  // exp(-pi i k^2 / length): k^2 modulo 2 * length, without overflow.
  int64_t square = 0;
  for (int64_t k = 0; k < length; ++k) {
    chirp_[static_cast<size_t>(k)] = root_of_unity(square, 2 * length, direction);
    square = (square + 2 * k + 1) % (2 * length);
  }
  const auto padded_size = static_cast<size_t>(padded_);
  chirp_spectrum_.resize(padded_size);
  for (size_t k = 0; k < size; ++k) {
    const Complex element = conjugate(chirp_[k]) * (1.0 / static_cast<double>(padded_));
    chirp_spectrum_[k] = element;
    if (k > 0) chirp_spectrum_[padded_size - k] = element;
  }
  std::pmr::vector<Complex> work(padded_size, &memory);
  radix_.transform(chirp_spectrum_, work);
}

void FourierPlan::transform(std::span<Complex> signal, std::span<Complex> work) const {
  if (chirp_.empty()) {
    radix_.transform(signal, work);
  } else {
    transform_by_chirp(signal, work);
  }
  if (direction_ == FourierDirection::Forward) return;
  const auto divisor = static_cast<double>(length_);
  for (Complex& element : signal) element = {element.real / divisor, element.imaginary / divisor};
}

void FourierPlan::transform_by_chirp(std::span<Complex> signal, std::span<Complex> work) const {
  const std::span<Complex> padded = work.first(chirp_spectrum_.size());
  const std::span<Complex> rest = work.subspan(padded.size(), padded.size());
  std::ranges::fill(padded, Complex{});
  for (size_t k = 0; k < signal.size(); ++k) padded[k] = signal[k] * chirp_[k];
  radix_.transform(padded, rest);
  // The conjugate of the transform of conjugates is the inverse transform.
  for (size_t k = 0; k < padded.size(); ++k) padded[k] = conjugate(padded[k] * chirp_spectrum_[k]);
  radix_.transform(padded, rest);
  for (size_t k = 0; k < signal.size(); ++k) signal[k] = conjugate(padded[k]) * chirp_[k];
}

int64_t fourier_flops(const Node&, std::span<const Type>, std::span<const Type> outputs) {
  int64_t longest = 1;
  for (const Dim& dim : *outputs[0].shape) longest = std::max(longest, dim.value());
  const auto steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(longest)));
  return multiply(Dim(element_count(dims_from(*outputs[0].shape))), Dim(3 * steps)).value();
}

}  // namespace tessera::ops
