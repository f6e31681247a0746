// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "recurrent/recurrence_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "recurrent/recurrence_kernels.cc"
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

// Rows whose sums are held in registers at a time: there are 32 registers, or 16.
#if HWY_CAP_GE512
constexpr int kRows = 6;
#elif HWY_NATIVE_FMA
constexpr int kRows = 3;
#else
constexpr int kRows = 2;
#endif

// The new state of the units of a panel of one row, from the sums of an LSTM. Replaces its cells.
HWY_INLINE Vector apply_lstm(const RecurrentStep& step, int64_t position, const Vector* sums) {
  const Tag d;
  const Vector input = sigmoid_of(d, sums[0]);
  const Vector forget = sigmoid_of(d, sums[2]);
  const Vector cell =
      hn::MulAdd(input, tanh_of(d, sums[3]), hn::Mul(forget, hn::Load(d, step.cell + position)));
  hn::Store(cell, d, step.cell + position);
  return hn::Mul(sigmoid_of(d, sums[1]), tanh_of(d, cell));
}

// The same of a GRU, whose last sum has no part of the input.
HWY_INLINE Vector apply_gru(const RecurrentStep& step, int64_t position, const float* input,
                            const Vector* sums) {
  const Tag d;
  const Vector update = sigmoid_of(d, sums[0]);
  const Vector reset = sigmoid_of(d, sums[1]);
  const Vector hidden = tanh_of(d, hn::MulAdd(reset, sums[2], hn::Load(d, input)));
  const Vector keeps = hn::Mul(update, hn::Load(d, step.state + position));
  return hn::MulAdd(hn::Sub(hn::Set(d, 1.0F), update), hidden, keeps);
}

HWY_INLINE void store_state(const RecurrentStep& step, int64_t row, int64_t unit,
                            const Vector& state) {
  const Tag d;
  hn::Store(state, d, step.next + row * step.state_row + unit);
  if (step.output == nullptr) return;
  float* output = step.output + row * step.output_row + unit;
  const int64_t count = step.hidden - unit;
  if (count >= lane_count()) {
    hn::StoreU(state, d, output);
  } else {
    store_some(state, d, output, count);
  }
}

// Advances kCount rows by one panel. Each gate has kChains sums, because a single sum would wait
// for the previous addition.
template <RecurrentCell kCell, int kCount, int kChains>
HWY_INLINE void advance_rows(const RecurrentStep& step, int64_t row, int64_t panel) {
  constexpr int kGates = static_cast<int>(gates_of(kCell));
  constexpr int kHidden = 2;  // the gate of a GRU whose sum has no part of the input
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t width = kGates * lanes;
  const int64_t unit = panel * lanes;
  Vector sums[kChains][kCount][kGates];
  for (int line = 0; line < kCount; ++line) {
    const float* from = step.sums + (row + line) * step.sums_row + panel * width;
    for (int gate = 0; gate < kGates; ++gate) {
      sums[0][line][gate] = hn::Load(d, from + gate * lanes);
      for (int chain = 1; chain < kChains; ++chain) sums[chain][line][gate] = hn::Zero(d);
    }
    if constexpr (kCell == RecurrentCell::Gru) {
      const bool has_bias = step.hidden_bias != nullptr;
      sums[0][line][kHidden] = has_bias ? hn::Load(d, step.hidden_bias + unit) : hn::Zero(d);
    }
  }
  const float* weights = step.weights + panel * step.hidden * width;
  const float* state = step.state + row * step.state_row;
  const auto add = [&](int chain, int64_t depth) HWY_ATTR {
    const float* from = weights + depth * width;
    for (int gate = 0; gate < kGates; ++gate) {
      const Vector factor = hn::Load(d, from + gate * lanes);
      for (int line = 0; line < kCount; ++line) {
        sums[chain][line][gate] = hn::MulAdd(hn::Set(d, state[line * step.state_row + depth]),
                                             factor, sums[chain][line][gate]);
      }
    }
  };
  int64_t depth = 0;
  for (; depth + kChains <= step.hidden; depth += kChains) {
    for (int chain = 0; chain < kChains; ++chain) add(chain, depth + chain);
  }
  for (; depth < step.hidden; ++depth) add(0, depth);
  for (int line = 0; line < kCount; ++line) {
    for (int gate = 0; gate < kGates; ++gate) {
      for (int chain = 1; chain < kChains; ++chain) {
        sums[0][line][gate] = hn::Add(sums[0][line][gate], sums[chain][line][gate]);
      }
    }
    const int64_t position = (row + line) * step.state_row + unit;
    if constexpr (kCell == RecurrentCell::Gru) {
      const float* input =
          step.sums + (row + line) * step.sums_row + panel * width + kHidden * lanes;
      store_state(step, row + line, unit, apply_gru(step, position, input, sums[0][line]));
    } else if constexpr (kCell == RecurrentCell::Rnn) {
      store_state(step, row + line, unit, tanh_of(d, sums[0][line][0]));
    } else {
      store_state(step, row + line, unit, apply_lstm(step, position, sums[0][line]));
    }
  }
}

template <RecurrentCell kCell, int kCount = kRows>
HWY_INLINE void advance_rest(const RecurrentStep& step, int64_t row, int64_t panel, int64_t count) {
  if constexpr (kCount > 0) {
    constexpr int kChainsOfOne = kCell == RecurrentCell::Rnn ? 8 : 2;
    if (count == kCount) {
      return advance_rows < kCell, kCount, kCount == 1 ? kChainsOfOne : 1 > (step, row, panel);
    }
    advance_rest<kCell, kCount - 1>(step, row, panel, count);
  }
}

// Panel by panel, so that its weights stay in the cache for further rows.
template <RecurrentCell kCell>
void advance(const RecurrentStep& step) {
  // Equal numbers of rows: few would wait for weights.
  const int64_t passes = (step.rows + kRows - 1) / kRows;
  const int64_t together = (step.rows + passes - 1) / std::max<int64_t>(passes, 1);
  for (int64_t panel = step.first_panel; panel < step.end_panel; ++panel) {
    for (int64_t row = 0; row < step.rows; row += together) {
      advance_rest<kCell>(step, row, panel, std::min(together, step.rows - row));
    }
  }
}

RecurrentLoops all_loops(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::Lstm:
      return {lane_count(), advance<RecurrentCell::Lstm>};
    case RecurrentCell::Gru:
      return {lane_count(), advance<RecurrentCell::Gru>};
    case RecurrentCell::Rnn:
      return {lane_count(), advance<RecurrentCell::Rnn>};
  }
  return {};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(all_loops);

RecurrentLoops find_recurrent_loops(RecurrentCell cell) {
  return HWY_DYNAMIC_DISPATCH(all_loops)(cell);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
