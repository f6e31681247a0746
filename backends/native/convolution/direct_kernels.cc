// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "convolution/direct_kernels.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convolution/direct_kernels.cc"
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

// The vectors of outputs of a pixel that are computed together: their sums, and those of some
// neighbouring pixels, stay in registers.
#if HWY_CAP_GE512
constexpr int kVectors = 2;
#else
constexpr int kVectors = 1;
#endif

// The inputs of some neighbouring outputs.
struct View {
  const float* from = nullptr;  // at the first row of taps that is inside
  int64_t pixel = 0;            // between neighbouring pixels
  int64_t channel = 0;          // between neighbouring channels
  int64_t row = 0;              // between neighbouring rows of taps
  // The pixels that are inside of the image, counted from `from`, which may be outside.
  int64_t first_inside = 0;
  int64_t end_inside = 0;

  HWY_INLINE bool has(int64_t place) const { return place >= first_inside && place < end_inside; }
};

// If all outputs read the same channels: spreads one channel of a pixel over a vector.
class Broadcast {
 public:
  explicit Broadcast(const DirectProblem&) {}
  void select(int64_t) {}
  HWY_INLINE Vector operator()(const float* from) const { return hn::Set(Tag(), *from); }
  // The distance from a channel to the next one.
  static HWY_INLINE int64_t distance(const View& view) { return view.channel; }
};

// For vectors with several groups: spreads a channel of each group over the lanes of the group.
class SpreadInGroups {
 public:
  explicit SpreadInGroups(const DirectProblem& problem) {
    const auto group = static_cast<int32_t>(problem.in_channels);
    HWY_ALIGN int32_t first_lanes[hn::MaxLanes(Tag())];
    for (int32_t lane = 0; lane < static_cast<int32_t>(lane_count()); ++lane) {
      first_lanes[lane] = lane / group * group;
    }
    first_lanes_ = hn::Load(Integers(), first_lanes);
  }
  HWY_INLINE void select(int64_t channel) {
    const auto offset = hn::Set(Integers(), static_cast<int32_t>(channel));
    lanes_ = hn::IndicesFromVec(Tag(), hn::Add(first_lanes_, offset));
  }
  HWY_INLINE Vector operator()(const float* from) const {
    return hn::TableLookupLanes(hn::LoadU(Tag(), from), lanes_);
  }
  // The pixel is a vector that has all channels.
  static HWY_INLINE int64_t distance(const View&) { return 0; }

 private:
  using Integers = hn::RebindToSigned<Tag>;
  hn::Vec<Integers> first_lanes_;
  decltype(hn::IndicesFromVec(Tag(), hn::Zero(Integers()))) lanes_;
};

// Adds the products of all taps to the sums of neighbouring outputs.
template <class Spread, int kTaps, int kStride>
struct Terms {
  // Each channel of a pixel is spread once, for all outputs that read it.
  template <bool kHasEdges, int kOutputs, int kUsed>
  static HWY_INLINE void add(const DirectProblem& problem, const View& view, const float* weights,
                             int64_t tap_rows, Vector (&sums)[kOutputs][kUsed]) {
    const Tag d;
    const int64_t lanes = lane_count();
    Spread spread(problem);
    for (int64_t tap_row = 0; tap_row < tap_rows; ++tap_row) {
      const float* line = view.from + tap_row * view.row;
      for (int64_t channel = 0; channel < problem.in_channels; ++channel) {
        spread.select(channel);
        Vector factors[kTaps][kUsed];
        for (auto& tap : factors) {
          for (int vector = 0; vector < kUsed; ++vector, weights += lanes) {
            tap[vector] = hn::LoadU(d, weights);
          }
        }
        const float* from = line;
        constexpr int kRead = (kOutputs - 1) * kStride + kTaps;
#pragma GCC unroll 64
        for (int pixel = 0; pixel < kRead; ++pixel, from += view.pixel) {
          if (kHasEdges && !view.has(pixel)) continue;
          const Vector input = spread(from);
#pragma GCC unroll 8
          for (int tap = 0; tap < kTaps; ++tap) {
            const int place = pixel - tap;
            if (place < 0 || place % kStride != 0 || place / kStride >= kOutputs) continue;
            for (int vector = 0; vector < kUsed; ++vector) {
              Vector& sum = sums[place / kStride][vector];
              sum = hn::MulAdd(input, factors[tap][vector], sum);
            }
          }
        }
        line += Spread::distance(view);
      }
    }
  }
};

// Any number of taps, any stride and dilation.
template <class Spread>
struct Terms<Spread, 0, 0> {
  template <bool kHasEdges, int kOutputs, int kUsed>
  static HWY_INLINE void add(const DirectProblem& problem, const View& view, const float* weights,
                             int64_t tap_rows, Vector (&sums)[kOutputs][kUsed]) {
    const Tag d;
    const int64_t lanes = lane_count();
    const int64_t step = problem.columns.stride * view.pixel;
    Spread spread(problem);
    for (int64_t tap_row = 0; tap_row < tap_rows; ++tap_row) {
      const float* line = view.from + tap_row * view.row;
      for (int64_t channel = 0; channel < problem.in_channels; ++channel) {
        spread.select(channel);
        const float* from = line;
        for (int64_t tap = 0; tap < problem.columns.kernel; ++tap) {
          Vector factors[kUsed];
          for (int vector = 0; vector < kUsed; ++vector, weights += lanes) {
            factors[vector] = hn::LoadU(d, weights);
          }
          for (int output = 0; output < kOutputs; ++output) {
            const int64_t place = output * problem.columns.stride + tap * problem.columns.dilation;
            if (kHasEdges && !view.has(place)) continue;
            const Vector input = spread(from + output * step);
            for (int vector = 0; vector < kUsed; ++vector) {
              sums[output][vector] = hn::MulAdd(input, factors[vector], sums[output][vector]);
            }
          }
          from += problem.columns.dilation * view.pixel;
        }
        line += Spread::distance(view);
      }
    }
  }
};

// Adds the addend, applies the activation, and stores the sums of outputs from `column` on.
template <int kOutputs, int kUsed>
HWY_INLINE void store_outputs(const DirectProblem& problem, const DirectOperands& operands,
                              int64_t column, Vector (&sums)[kOutputs][kUsed]) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Activation& activation = problem.activation;
  const float low = activation.lower_limit();
  const float high = activation.upper_limit();
  for (int output = 0; output < kOutputs; ++output) {
    const int64_t start = (column + output) * problem.out_pixel;
    for (int vector = 0; vector < kUsed; ++vector) {
      const int64_t place = start + vector * lanes;
      const int64_t count = std::min(lanes, operands.channels - vector * lanes);
      Vector result = sums[output][vector];
      if (operands.addend != nullptr) {
        result = hn::Add(result, load_some(d, operands.addend + place, count));
      }
      result = activation.is_gated() ? gated(d, activation, result) : clamp(d, result, low, high);
      if (count == lanes) {
        hn::StoreU(result, d, operands.to + place);
      } else {
        store_some(result, d, operands.to + place, count);
      }
    }
  }
}

// Computes kOutputs neighbouring outputs at a time; the row has at least as many.
template <class Sum, int kOutputs, int kUsed>
void compute_by(const DirectProblem& problem, const DirectOperands& operands, int64_t row) {
  const Tag d;
  const int64_t lanes = lane_count();
  const plugin::WindowAxis& rows = problem.rows;
  const plugin::WindowAxis& columns = problem.columns;
  const plugin::TapRange taps = plugin::taps_inside(rows, row);
  const int64_t line = columns.input * problem.in_pixel;
  const int64_t first_row = row * rows.stride - rows.pad_begin + taps.begin * rows.dilation;
  View view = {
      .pixel = problem.in_pixel, .channel = problem.in_channel, .row = rows.dilation * line};
  const float* weights =
      operands.weights + taps.begin * columns.kernel * problem.in_channels * kUsed * lanes;
  Vector start[kUsed];
  for (int vector = 0; vector < kUsed; ++vector) {
    const int64_t count = std::min(lanes, operands.channels - vector * lanes);
    start[vector] = operands.bias == nullptr ? hn::Zero(d)
                                             : load_some(d, operands.bias + vector * lanes, count);
  }
  for (int64_t next = 0; next < columns.output; next += kOutputs) {
    const int64_t column = std::min(next, columns.output - kOutputs);  // some are computed twice
    const int64_t pixel = column * columns.stride - columns.pad_begin;
    view.from = operands.from + first_row * line + pixel * problem.in_pixel;
    view.first_inside = -pixel;
    view.end_inside = columns.input - pixel;
    Vector sums[kOutputs][kUsed];
    for (auto& output : sums) {
      for (int vector = 0; vector < kUsed; ++vector) output[vector] = start[vector];
    }
    const int64_t read = (kOutputs - 1) * columns.stride + columns.extent();
    if (view.has(0) && view.has(read - 1)) {
      Sum::template add<false, kOutputs, kUsed>(problem, view, weights, taps.count(), sums);
    } else {
      Sum::template add<true, kOutputs, kUsed>(problem, view, weights, taps.count(), sums);
    }
    store_outputs(problem, operands, column, sums);
  }
}

using ComputeRow = void (*)(const DirectProblem& problem, const DirectOperands& operands,
                            int64_t row);

// Computes kOutputs or kFewer outputs at a time. The number is chosen so that few outputs are
// computed twice, and that each spread channel serves many.
template <class Sum, int kUsed, int kOutputs, int... kFewer>
ComputeRow best_by(int64_t outputs) {
  ComputeRow best = compute_by<Sum, kOutputs, kUsed>;
  const auto cost_of = [&](int64_t together) {
    return outputs < together ? outputs * 100
                              : (outputs + together - 1) / together * (together + 1);
  };
  int64_t least = cost_of(kOutputs);
  const auto consider = [&](int64_t together, ComputeRow by) {
    if (cost_of(together) >= least) return;
    least = cost_of(together);
    best = by;
  };
  (consider(kFewer, compute_by<Sum, kFewer, kUsed>), ...);
  return best;
}

template <class Sum, int kUsed>
void compute_vectors(const DirectProblem& problem, const DirectOperands& operands, int64_t row) {
  constexpr bool kHasManyRegisters = kUsed == 1 && kVectors > 1;
  const ComputeRow by = [&] {
    if constexpr (kHasManyRegisters) {
      return best_by<Sum, kUsed, 14, 10, 7, 5, 3, 1>(problem.columns.output);
    } else {
      return best_by<Sum, kUsed, 7, 5, 3, 1>(problem.columns.output);
    }
  }();
  by(problem, operands, row);
}

template <class Spread, int kTaps, int kStride>
void compute_row(const DirectProblem& problem, const DirectOperands& operands, int64_t row) {
  using Sum = Terms<Spread, kTaps, kStride>;
  if constexpr (kVectors > 1 && std::is_same_v<Spread, Broadcast>) {
    if (operands.channels > lane_count()) {
      return compute_vectors<Sum, kVectors>(problem, operands, row);
    }
  }
  compute_vectors<Sum, 1>(problem, operands, row);
}

template <class Spread, int kTaps>
auto row_by_stride(int64_t stride) {
  return stride == 1 ? compute_row<Spread, kTaps, 1> : compute_row<Spread, kTaps, 2>;
}

template <class Spread>
auto row_of(const plugin::WindowAxis& columns) {
  if (columns.dilation == 1 && columns.stride <= 2) {
    if (columns.kernel == 3) return row_by_stride<Spread, 3>(columns.stride);
    if (columns.kernel == 5) return row_by_stride<Spread, 5>(columns.stride);
    if (columns.kernel == 7) return row_by_stride<Spread, 7>(columns.stride);
  }
  return compute_row<Spread, 0, 0>;
}

DirectLoops direct_loops(const DirectProblem& problem) {
  const plugin::WindowAxis& columns = problem.columns;
  DirectLoops loops = {.lanes = lane_count(), .channels = kVectors * lane_count()};
  loops.compute_row = row_of<Broadcast>(columns);
  if (problem.has_groups_in_vector) {
    loops.channels = loops.lanes;
    loops.compute_row = row_of<SpreadInGroups>(columns);
  }
  return loops;
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {
HWY_EXPORT(direct_loops);
}  // namespace

DirectLoops find_direct_loops(const DirectProblem& problem) {
  return HWY_DYNAMIC_DISPATCH(direct_loops)(problem);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
