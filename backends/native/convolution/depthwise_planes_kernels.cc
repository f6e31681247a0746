// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "convolution/depthwise_planes_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convolution/depthwise_planes_kernels.cc"
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

// Vectors that are computed together, because each has to wait for its own sum.
constexpr int kVectors = 8;

// Elements [start, start + lanes) of a row of `length`; zeros outside of the row.
HWY_INLINE Vector load_inside(const float* row, int64_t start, int64_t length) {
  const Tag d;
  const int64_t lanes = lane_count();
  if (start >= 0 && start + lanes <= length) return hn::LoadU(d, row + start);
  const int64_t begin = std::clamp<int64_t>(-start, 0, lanes);
  const int64_t end = std::clamp<int64_t>(length - start, begin, lanes);
  if constexpr (kMasksMemory) {
    const auto before = hn::FirstN(d, static_cast<size_t>(begin));
    const auto until = hn::FirstN(d, static_cast<size_t>(end));
    return hn::MaskedLoad(hn::AndNot(before, until), d, row + start);
  } else {
    HWY_ALIGN float elements[hn::MaxLanes(Tag())] = {};
    for (int64_t lane = begin; lane < end; ++lane) elements[lane] = row[start + lane];
    return hn::Load(d, elements);
  }
}

// Copies a row of inputs from column `start` on into its lines.
HWY_INLINE void copy_row(const PlaneProblem& problem, const float* row, int64_t start, float* to) {
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t length = problem.columns().input;
  const int64_t stride = problem.columns().stride;
  if (stride == 1) {
    for (int64_t index = 0; index < problem.line(); index += lanes) {
      hn::Store(load_inside(row, start + index, length), d, to + index);
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    for (int64_t index = 0; index < problem.line(); index += lanes) {
      const Vector first = load_inside(row, start + 2 * index, length);
      const Vector second = load_inside(row, start + 2 * index + lanes, length);
      hn::Store(hn::ConcatEven(d, second, first), d, to + index);
      if (problem.phases() == 1) continue;
      hn::Store(hn::ConcatOdd(d, second, first), d, to + problem.line() + index);
    }
    return;
  }
#endif
  for (int64_t phase = 0; phase < problem.phases(); ++phase, to += problem.line()) {
    for (int64_t index = 0; index < problem.line(); ++index) {
      const int64_t column = start + index * stride + phase;
      to[index] = column >= 0 && column < length ? row[column] : 0.0F;
    }
  }
}

void fill_buffer(const PlaneProblem& problem, const PlaneTile& tile,
                 const PlaneOperands& operands) {
  const plugin::WindowAxis& axis = problem.rows();
  const int64_t columns = problem.columns().input;
  const int64_t row_elements = problem.phases() * problem.line();
  const int64_t start_row = tile.first_row * axis.stride - axis.pad_begin;
  const int64_t start_column =
      tile.first_column * problem.columns().stride - problem.columns().pad_begin;
  const int64_t rows = (tile.rows - 1) * axis.stride + axis.extent();
  float* to = operands.buffer;
  for (int64_t index = 0; index < rows; ++index, to += row_elements) {
    const int64_t row = start_row + index;
    if (row >= 0 && row < axis.input) {
      copy_row(problem, operands.from + row * columns, start_column, to);
    } else {
      std::fill(to, to + row_elements, 0.0F);
    }
  }
}

// The vectors of a tile's outputs, row by row. The last one of a row ends with the row, so some
// outputs may be computed twice.
class Position {
 public:
  Position(const PlaneProblem& problem, const PlaneTile& tile, const PlaneOperands& operands)
      : last_(std::max<int64_t>(0, tile.columns - lane_count())),
        from_row_(problem.rows().stride * problem.phases() * problem.line()),
        to_row_(problem.columns().output),
        from_(operands.buffer),
        to_(operands.to + tile.first_row * to_row_ + tile.first_column) {}

  const float* from() const { return from_ + column_; }
  float* to() const { return to_ + column_; }

  void step() {
    if (column_ < last_) {
      column_ = std::min(column_ + lane_count(), last_);
      return;
    }
    column_ = 0;
    from_ += from_row_;
    to_ += to_row_;
  }

 private:
  int64_t last_;  // the column of the last vector of a row
  int64_t from_row_;
  int64_t to_row_;
  int64_t column_ = 0;
  const float* from_;
  float* to_;
};

// Computes kCount vectors from `position` on, of `count` outputs each.
template <int kCount>
void compute(const PlaneProblem& problem, const PlaneOperands& operands, int64_t count,
             Position& position) {
  const Tag d;
  const float* from[kCount];
  float* to[kCount];
  for (int index = 0; index < kCount; ++index) {
    from[index] = position.from();
    to[index] = position.to();
    position.step();
  }
  Vector sums[kCount];
  for (Vector& sum : sums) sum = hn::Set(d, operands.bias);
  const float* weight = operands.weights;
  const int64_t* const end = operands.tap_offsets + problem.taps();
  for (const int64_t* at = operands.tap_offsets; at != end; ++at) {
    const int64_t offset = *at;
    const Vector factor = hn::Set(d, *weight++);
    for (int index = 0; index < kCount; ++index) {
      sums[index] = hn::MulAdd(hn::LoadU(d, from[index] + offset), factor, sums[index]);
    }
  }
  const float low = problem.activation().lower_limit();
  const float high = problem.activation().upper_limit();
  for (int index = 0; index < kCount; ++index) {
    const Vector result = clamp(d, sums[index], low, high);
    if (count == lane_count()) {
      hn::StoreU(result, d, to[index]);
    } else {
      store_some(result, d, to[index], count);
    }
  }
}

using Compute = void (*)(const PlaneProblem& problem, const PlaneOperands& operands, int64_t count,
                         Position& position);
constexpr Compute kRest[kVectors] = {nullptr,    compute<1>, compute<2>, compute<3>,
                                     compute<4>, compute<5>, compute<6>, compute<7>};

// Applies a gated activation to outputs that were stored.
HWY_NOINLINE void activate(const PlaneProblem& problem, const PlaneTile& tile, float* to) {
  const Tag d;
  for (int64_t row = 0; row < tile.rows; ++row, to += problem.columns().output) {
    for_vectors(
        d, tile.columns,
        [&](int64_t index) {
          const Vector value = hn::LoadU(d, to + index);
          hn::StoreU(gated(d, problem.activation(), value), d, to + index);
        },
        [&](int64_t index, int64_t rest) {
          const Vector value = load_some(d, to + index, rest);
          store_some(gated(d, problem.activation(), value), d, to + index, rest);
        });
  }
}

void compute_tile(const PlaneProblem& problem, const PlaneTile& tile,
                  const PlaneOperands& operands) {
  fill_buffer(problem, tile, operands);
  const int64_t lanes = lane_count();
  const int64_t count = std::min(lanes, tile.columns);
  int64_t vectors = tile.rows * ((tile.columns + lanes - 1) / lanes);
  Position position(problem, tile, operands);
  for (; vectors >= kVectors; vectors -= kVectors) {
    compute<kVectors>(problem, operands, count, position);
  }
  if (vectors > 0) kRest[vectors](problem, operands, count, position);
  if (!problem.activation().is_gated()) return;
  activate(problem, tile,
           operands.to + tile.first_row * problem.columns().output + tile.first_column);
}

PlaneLoop loop_of() { return compute_tile; }
int64_t lanes_of() { return lane_count(); }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "base/divide_up.h"

namespace tessera::native {

namespace {

HWY_EXPORT(loop_of);
HWY_EXPORT(lanes_of);

// The buffer of a tile should stay in the first-level cache, with the outputs that it gives.
constexpr int64_t kBufferElements = 6 * 1024;
constexpr int64_t kMaxTileColumns = 2048;

// The size of parts of at most `largest` in which `length` is divided as evenly as possible.
int64_t even_part(int64_t length, int64_t largest) {
  return divide_up(length, divide_up(length, largest));
}

}  // namespace

PlaneProblem::PlaneProblem(const plugin::WindowAxis& rows, const plugin::WindowAxis& columns,
                           const Activation& activation)
    : rows_(rows), columns_(columns), activation_(activation) {
  tile_columns_ = even_part(columns.output, kMaxTileColumns);
  phases_ = std::min(columns.stride, columns.extent());
  // Loads of whole vectors may go beyond the last output.
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(lanes_of)();
  const int64_t used = std::max(tile_columns_, lanes) + (columns.extent() - 1) / columns.stride;
  line_ = divide_up(used, lanes) * lanes;
  while (tile_rows_ < rows.output && buffer_elements(tile_rows_ + 1) <= kBufferElements) {
    ++tile_rows_;
  }
  tile_rows_ = even_part(rows.output, tile_rows_);
}

void PlaneProblem::write_tap_offsets(int64_t* to) const {
  for (int64_t row = 0; row < rows_.kernel; ++row) {
    for (int64_t column = 0; column < columns_.kernel; ++column) {
      const int64_t distance = column * columns_.dilation;
      const int64_t line = row * rows_.dilation * phases_ + distance % columns_.stride;
      *to++ = line * line_ + distance / columns_.stride;
    }
  }
}

PlaneLoop find_plane_loop() { return HWY_DYNAMIC_DISPATCH(loop_of)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
