// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "convolution/depthwise_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convolution/depthwise_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/float_functions.h"
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// Outputs that are computed together, because each has to wait for its own sum: rows of many
// networks have 7, 14, 28, ... of them.
constexpr int kOutputs = 7;

// Applies a gated activation to `outputs` outputs that were stored.
HWY_NOINLINE void activate(const DepthwiseProblem& problem, int64_t outputs, int64_t count,
                           float* to) {
  const Tag d;
  for (int64_t output = 0; output < outputs; ++output, to += problem.to_pixel) {
    store_some(gated(d, problem.activation, load_some(d, to, count)), d, to, count);
  }
}

// A row of outputs.
struct Row {
  const DepthwiseProblem& problem;
  const DepthwiseOperands& operands;
  plugin::TapRange taps;           // rows of taps that are inside
  const float* from = nullptr;     // the first of their rows of pixels
  const float* weights = nullptr;  // of the first of these taps
};

template <bool kIsWhole>
HWY_INLINE Vector load(const float* from, int64_t count) {
  return kIsWhole ? hn::LoadU(Tag(), from) : load_some(Tag(), from, count);
}

// Keeps the compiler from reading the memory again in each instruction that uses `vector`.
HWY_INLINE void keep_in_register(Vector& vector) {
#if HWY_ARCH_X86 && HWY_CAP_GE512
  asm("" : "+v"(vector.raw));  // NOLINT(hicpp-no-assembler)
#else
  static_cast<void>(vector);
#endif
}

template <bool kIsWhole>
HWY_INLINE void store(Vector vector, float* to, int64_t count) {
  if (kIsWhole) {
    hn::StoreU(vector, Tag(), to);
  } else {
    store_some(vector, Tag(), to, count);
  }
}

// Computes kOutputs outputs from `column` on, for `count` channels from `channel` on. Of the pixels
// that they read in a row, the first kLeft and the last kRight are outside.
template <int kTaps, int kStride, int kLeft, int kRight, bool kIsWhole>
HWY_INLINE void compute_channels(const Row& row, int64_t column, int64_t channel, int64_t count) {
  const DepthwiseProblem& problem = row.problem;
  const DepthwiseOperands& operands = row.operands;
  const int64_t pixel = problem.from_pixel;
  const Vector start =
      operands.bias == nullptr ? hn::Zero(Tag()) : load<kIsWhole>(operands.bias + channel, count);
  Vector sums[kOutputs];
  for (Vector& sum : sums) sum = start;
  const float* from = row.from + (column * kStride - problem.columns.pad_begin) * pixel + channel;
  const float* weights = row.weights + channel;
  for (int64_t tap = row.taps.begin; tap < row.taps.end; ++tap) {
    // Each pixel is read once, for all outputs that it belongs to.
    constexpr int kPixels = (kOutputs - 1) * kStride + kTaps;
    Vector pixels[kPixels];
    for (int index = kLeft; index < kPixels - kRight; ++index) {
      pixels[index] = load<kIsWhole>(from + index * pixel, count);
      keep_in_register(pixels[index]);
    }
    for (int column_tap = 0; column_tap < kTaps; ++column_tap) {
      const Vector weight = load<kIsWhole>(weights + column_tap * operands.weight_stride, count);
      for (int output = 0; output < kOutputs; ++output) {
        const int index = output * kStride + column_tap;
        const bool is_inside = index >= kLeft && index < kPixels - kRight;
        if (is_inside) sums[output] = hn::MulAdd(pixels[index], weight, sums[output]);
      }
    }
    from += problem.columns.input * pixel;
    weights += kTaps * operands.weight_stride;
  }
  float* to = operands.to + column * problem.to_pixel + channel;
  const float low = problem.activation.lower_limit();
  const float high = problem.activation.upper_limit();
  for (int output = 0; output < kOutputs; ++output) {
    store<kIsWhole>(clamp(Tag(), sums[output], low, high), to + output * problem.to_pixel, count);
  }
  if (problem.activation.is_gated()) activate(problem, kOutputs, count, to);
}

template <int kTaps, int kStride, int kLeft, int kRight>
void compute_together(const Row& row, int64_t column) {
  const int64_t channels = row.problem.channels;
  const int64_t lanes = lane_count();
  int64_t channel = 0;
  for (; channel + lanes <= channels; channel += lanes) {
    compute_channels<kTaps, kStride, kLeft, kRight, true>(row, column, channel, lanes);
  }
  if (channel == channels) return;
  compute_channels<kTaps, kStride, kLeft, kRight, false>(row, column, channel, channels - channel);
}

using Together = void (*)(const Row& row, int64_t column);

// The loops for `left` and `right` pixels outside, at most half of the taps on each side.
template <int kTaps, int kStride, int kLeft = kTaps / 2, int kRight = kTaps / 2>
Together find_together(int64_t left, int64_t right) {
  if (left == kLeft && right == kRight) return compute_together<kTaps, kStride, kLeft, kRight>;
  if constexpr (kRight > 0) {
    if (right < kRight) return find_together<kTaps, kStride, kLeft, kRight - 1>(left, right);
  }
  if constexpr (kLeft > 0) {
    if (left < kLeft) return find_together<kTaps, kStride, kLeft - 1, kRight>(left, right);
  }
  return nullptr;
}

// One output anywhere.
template <int kTaps, int kStride>
HWY_NOINLINE void compute_one(const Row& row, int64_t column) {
  const DepthwiseProblem& problem = row.problem;
  const DepthwiseOperands& operands = row.operands;
  const plugin::TapRange inside = plugin::taps_inside(problem.columns, column);
  const int64_t first = (column * kStride - problem.columns.pad_begin) * problem.from_pixel;
  for (int64_t channel = 0; channel < problem.channels; channel += lane_count()) {
    const int64_t count = std::min(lane_count(), problem.channels - channel);
    Vector sum =
        operands.bias == nullptr ? hn::Zero(Tag()) : load<false>(operands.bias + channel, count);
    const float* from = row.from + first + channel;
    const float* weights = row.weights + channel;
    for (int64_t tap = row.taps.begin; tap < row.taps.end; ++tap) {
      for (int64_t column_tap = inside.begin; column_tap < inside.end; ++column_tap) {
        sum = hn::MulAdd(load<false>(from + column_tap * problem.from_pixel, count),
                         load<false>(weights + column_tap * operands.weight_stride, count), sum);
      }
      from += problem.columns.input * problem.from_pixel;
      weights += kTaps * operands.weight_stride;
    }
    const float low = problem.activation.lower_limit();
    const float high = problem.activation.upper_limit();
    float* to = operands.to + column * problem.to_pixel + channel;
    store<false>(clamp(Tag(), sum, low, high), to, count);
    if (problem.activation.is_gated()) activate(problem, 1, count, to);
  }
}

template <int kTaps, int kStride>
void compute_row(const DepthwiseProblem& problem, const DepthwiseOperands& operands, int64_t row) {
  const plugin::WindowAxis& axis = problem.columns;
  Row made = {problem, operands, plugin::taps_inside(problem.rows, row)};
  const int64_t first_row =
      row * kStride - problem.rows.pad_begin + made.taps.begin - operands.from_row;
  made.from = operands.from + first_row * axis.input * problem.from_pixel;
  made.weights = operands.weights + made.taps.begin * kTaps * operands.weight_stride;
  // The number of pixels outside of the row that outputs from `column` on read.
  const auto left_of = [&](int64_t column) {
    return std::max<int64_t>(0, axis.pad_begin - column * kStride);
  };
  const auto right_of = [&](int64_t column) {
    const int64_t last = (column + kOutputs - 1) * kStride - axis.pad_begin + kTaps - 1;
    return std::max<int64_t>(0, last + 1 - axis.input);
  };
  const int64_t last = axis.output - kOutputs;
  if (last < 0 || left_of(0) > kTaps / 2 || right_of(last) > kTaps / 2) {
    for (int64_t column = 0; column < axis.output; ++column) {
      compute_one<kTaps, kStride>(made, column);
    }
    return;
  }
  for (int64_t column = 0; column < axis.output; column += kOutputs) {
    const int64_t first = std::min(column, last);  // some outputs may be computed twice
    const int64_t left = left_of(first);
    const int64_t right = right_of(first);
    if (left == 0 && right == 0) {
      compute_together<kTaps, kStride, 0, 0>(made, first);
    } else {
      find_together<kTaps, kStride>(left, right)(made, first);
    }
  }
}

DepthwiseRow row_of(int64_t taps, int64_t stride) {
  if (taps == 3) return stride == 1 ? compute_row<3, 1> : compute_row<3, 2>;
  if (taps == 5) return stride == 1 ? compute_row<5, 1> : compute_row<5, 2>;
  return stride == 1 ? compute_row<7, 1> : compute_row<7, 2>;
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {
HWY_EXPORT(row_of);
}  // namespace

DepthwiseRow find_depthwise_row(const DepthwiseProblem& problem) {
  const plugin::WindowAxis& rows = problem.rows;
  const plugin::WindowAxis& columns = problem.columns;
  const int64_t taps = rows.kernel;
  const int64_t stride = rows.stride;
  const bool has_loops = (taps == 3 || taps == 5 || taps == 7) && (stride == 1 || stride == 2);
  if (!has_loops || columns.kernel != taps || columns.stride != stride) return nullptr;
  if (rows.dilation != 1 || columns.dilation != 1) return nullptr;
  return HWY_DYNAMIC_DISPATCH(row_of)(taps, stride);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
