#include "reduce/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/divide_up.h"
#include "base/grain.h"

namespace tessera::native {

using plugin::RunContext;

namespace {

// If there are fewer columns than this, several rows are processed as one wide row: more rows for
// more elements, because the results must be combined in the end.
constexpr int64_t kNarrow = 64;
constexpr int64_t kJoinedColumns = 256;
constexpr int64_t kFewColumns = 16;
constexpr int64_t kMany = 8192;

// The largest number of results in one part, if rows are short.
constexpr int64_t kMaxBatch = 256;

}  // namespace

ReductionKind reduction_kind(std::string_view op) {
  static const std::map<std::string_view, ReductionKind> kKinds = {
      {"ReduceL1", {ReduceOp::AbsoluteSum, Finish::AsIs}},
      {"ReduceL2", {ReduceOp::SquareSum, Finish::Root}},
      {"ReduceLogSum", {ReduceOp::Sum, Finish::Logarithm}},
      {"ReduceLogSumExp", {ReduceOp::ExponentialSum, Finish::Logarithm}},
      {"ReduceMax", {ReduceOp::Max, Finish::AsIs}},
      {"ReduceMean", {ReduceOp::Sum, Finish::Mean}},
      {"ReduceMin", {ReduceOp::Min, Finish::AsIs}},
      {"ReduceProd", {ReduceOp::Product, Finish::AsIs}},
      {"ReduceSum", {ReduceOp::Sum, Finish::AsIs}},
      {"ReduceSumSquare", {ReduceOp::SquareSum, Finish::AsIs}},
  };
  return kKinds.at(op);
}

Reduction::Reduction(ReductionKind kind, ReducedAxes axes, int threads)
    : kind_(kind),
      loops_(find_reduction_loops(kind.op)),
      max_loops_(find_reduction_loops(ReduceOp::Max)) {
  is_columns_ = !axes.is_empty() && !axes.back().is_reduced;
  if (is_columns_) {
    results_ = width_ = axes.back().length;
    axes.remove_back();
  }
  int64_t stride = width_;
  if (!axes.is_empty()) {
    elements_per_result_ = length_ = axes.back().length;
    stride_ = stride;
    stride *= length_;
    axes.remove_back();
  }
  for (; !axes.is_empty(); axes.remove_back()) {
    const ReducedAxis& axis = axes.back();
    (axis.is_reduced ? elements_per_result_ : results_) *= axis.length;
    (axis.is_reduced ? outer_ : kept_).add(axis.length, stride);
    stride *= axis.length;
  }
  if (results_ > 0 && elements_per_result_ > 0) split(threads);
}

// Splits the reduction into parts for all threads. A small reduction gets fewer parts.
void Reduction::split(int threads) {
  tile_ = std::min(width_, kMaxColumns);
  if (!is_columns_) batch_ = std::clamp<int64_t>(kGrain / elements_per_result_, 1, kMaxBatch);
  const int64_t spread =
      is_columns_ ? kept_.elements() * divide_up(width_, tile_) : divide_up(results_, batch_);
  const int64_t wanted = std::min<int64_t>(threads, results_ * elements_per_result_ / kGrain);
  if (spread < wanted) {
    // Few pieces, and the same number for each thread.
    pieces_ = divide_up(wanted, spread);
    splits_outer_ = outer_.elements() >= length_;
    pieces_ = std::min(pieces_, splits_outer_ ? outer_.elements() : length_);
  }
  parts_ = spread * pieces_;
  grain_ =
      std::max<int64_t>(1, kGrain * parts_ / std::max<int64_t>(1, results_ * elements_per_result_));
}

Reduction::Part Reduction::part_at(int64_t index) const {
  Part part;
  const int64_t piece = index % pieces_;
  const int64_t position = index / pieces_;
  if (is_columns_) {
    const int64_t tiles = divide_up(width_, tile_);
    const int64_t column = position % tiles * tile_;
    part.first = position / tiles * width_ + column;
    part.results = std::min(tile_, width_ - column);
  } else {
    part.first = position * batch_;
    part.results = std::min(batch_, results_ - part.first);
  }
  const auto begin = [&](int64_t count, int64_t of) { return count * of / pieces_; };
  const int64_t outer = outer_.elements();
  part.begin = splits_outer_ ? 0 : begin(length_, piece);
  part.end = splits_outer_ ? length_ : begin(length_, piece + 1);
  part.outer_begin = splits_outer_ ? begin(outer, piece) : 0;
  part.outer_end = splits_outer_ ? begin(outer, piece + 1) : outer;
  return part;
}

void Reduction::accumulate_rows(const ReductionLoops& loops, const Part& part, const float* from,
                                const float* shifts, double* accumulators) const {
  const int64_t length = part.end - part.begin;
  // Rows at equal distances are processed by one call.
  const int64_t run = kept_.count == 0 ? 1 : kept_.lengths[0];
  const int64_t distance = kept_.count == 0 ? 0 : kept_.strides[0];
  for (int64_t outer = part.outer_begin; outer < part.outer_end; ++outer) {
    const float* rows = from + outer_.offset(outer) + part.begin;
    for (int64_t done = 0; done < part.results;) {
      const int64_t first = part.first + done;
      const int64_t count = std::min(run - first % run, part.results - done);
      loops.rows(rows + kept_.offset(first), count, distance, length,
                 shifts == nullptr ? nullptr : shifts + done, accumulators + done);
      done += count;
    }
  }
}

// Processes several contiguous rows as one wide row.
void Reduction::accumulate_narrow(const ReductionLoops& loops, const Part& part, const float* from,
                                  const float* shifts, double* accumulators) const {
  const int64_t rows = part.end - part.begin;
  const int64_t wanted = rows * width_ < kMany ? kFewColumns : kJoinedColumns;
  const int64_t joined = std::clamp<int64_t>(wanted / width_, 1, rows);
  const int64_t width = joined * width_;
  alignas(64) double wide[kJoinedColumns + kColumnUnit];
  alignas(64) float wide_shifts[kJoinedColumns + kColumnUnit] = {};
  std::fill(wide, wide + width, loops.start);
  if (shifts != nullptr) {
    for (int64_t column = 0; column < width; ++column) {
      wide_shifts[column] = shifts[column % width_];
    }
  }
  const float* used = shifts == nullptr ? nullptr : wide_shifts;
  for (int64_t outer = part.outer_begin; outer < part.outer_end; ++outer) {
    const float* numbers = from + outer_.offset(outer) + part.begin * width_;
    const int64_t whole = rows / joined;
    loops.columns(numbers, whole, width, width, used, wide);
    loops.columns(numbers + whole * width, 1, width, (rows - whole * joined) * width_, used, wide);
  }
  for (int64_t row = 0; row < joined; ++row) loops.join(wide + row * width_, width_, accumulators);
}

void Reduction::accumulate_columns(const ReductionLoops& loops, const Part& part, const float* from,
                                   const float* shifts, double* accumulators) const {
  const float* start = from + kept_.offset(part.first / width_);
  if (width_ < kNarrow && part.end - part.begin > 1) {
    return accumulate_narrow(loops, part, start, shifts, accumulators);
  }
  for (int64_t outer = part.outer_begin; outer < part.outer_end; ++outer) {
    loops.columns(start + outer_.offset(outer) + part.begin * stride_ + part.first % width_,
                  part.end - part.begin, stride_, part.results, shifts, accumulators);
  }
}

void Reduction::accumulate(const ReductionLoops& loops, const Part& part, const float* from,
                           const float* shifts, double* accumulators) const {
  std::fill(accumulators, accumulators + part.results, loops.start);
  if (is_columns_) {
    accumulate_columns(loops, part, from, shifts, accumulators);
  } else {
    accumulate_rows(loops, part, from, shifts, accumulators);
  }
}

void Reduction::finish_results(Finish finish, const double* accumulators, const float* shifts,
                               int64_t count, float* to) const {
  const double share = 1 / static_cast<double>(elements_per_result_);
  switch (finish) {
    case Finish::AsIs:
      for (int64_t index = 0; index < count; ++index)
        to[index] = static_cast<float>(accumulators[index]);
      return;
    case Finish::Mean:
      for (int64_t index = 0; index < count; ++index) {
        to[index] = static_cast<float>(accumulators[index] * share);
      }
      return;
    case Finish::Root:
      for (int64_t index = 0; index < count; ++index) {
        to[index] = static_cast<float>(std::sqrt(accumulators[index]));
      }
      return;
    case Finish::Logarithm:
      for (int64_t index = 0; index < count; ++index) {
        const double shift = shifts == nullptr ? 0 : double{shifts[index]};
        to[index] = static_cast<float>(std::log(accumulators[index]) + shift);
      }
      return;
  }
}

int64_t Reduction::workspace_bytes() const {
  if (results_ == 0 || elements_per_result_ == 0) return 0;
  const int64_t accumulators = pieces_ == 1 ? 0 : (results_ + kColumnUnit) * pieces_;
  const bool has_shifts = kind_.op == ReduceOp::ExponentialSum;
  const int64_t shifts = has_shifts ? results_ + kColumnUnit : 0;
  return accumulators * static_cast<int64_t>(sizeof(double)) +
         shifts * static_cast<int64_t>(sizeof(float));
}

void Reduction::accumulate_all(RunContext& context, const ReductionLoops& loops, Finish finish,
                               const float* from, const float* shifts, float* to) const {
  const auto shifts_at = [shifts](int64_t result) {
    return shifts == nullptr ? nullptr : shifts + result;
  };
  if (pieces_ == 1) {
    context.parallel_for(parts_, grain_, [&](int64_t begin, int64_t end) {
      alignas(64) double accumulators[kMaxColumns + kColumnUnit] = {};
      for (int64_t index = begin; index < end; ++index) {
        const Part part = part_at(index);
        accumulate(loops, part, from, shifts_at(part.first), accumulators);
        finish_results(finish, accumulators, shifts_at(part.first), part.results, to + part.first);
      }
    });
    return;
  }
  double* accumulators = static_cast<double*>(context.workspace());
  const int64_t room = results_ + kColumnUnit;
  context.parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Part part = part_at(index);
      alignas(64) double own[kMaxColumns + kColumnUnit] = {};
      accumulate(loops, part, from, shifts_at(part.first), own);
      std::copy_n(own, part.results, accumulators + index % pieces_ * room + part.first);
    }
  });
  for (int64_t piece = 1; piece < pieces_; ++piece) {
    loops.join(accumulators + piece * room, results_, accumulators);
  }
  finish_results(finish, accumulators, shifts, results_, to);
}

void Reduction::run(RunContext& context, const float* from, float* to) const {
  if (results_ == 0) return;
  if (elements_per_result_ == 0) {
    const double accumulator = loops_.start;
    for (int64_t index = 0; index < results_; ++index) {
      finish_results(kind_.finish, &accumulator, nullptr, 1, to + index);
    }
    return;
  }
  if (kind_.op != ReduceOp::ExponentialSum) {
    return accumulate_all(context, loops_, kind_.finish, from, nullptr, to);
  }
  // The shifts are behind the accumulators in the workspace.
  const int64_t accumulators = pieces_ == 1 ? 0 : (results_ + kColumnUnit) * pieces_;
  float* shifts =
      reinterpret_cast<float*>(static_cast<double*>(context.workspace()) + accumulators);
  accumulate_all(context, max_loops_, Finish::AsIs, from, nullptr, shifts);
  // If the largest element is infinite, it is the result, or there is no element; subtracting it
  // would give NaN.
  std::vector<int64_t> infinite;
  for (int64_t index = 0; index < results_; ++index) {
    if (!std::isinf(shifts[index])) continue;
    if (shifts[index] > 0) infinite.push_back(index);
    shifts[index] = 0;
  }
  accumulate_all(context, loops_, kind_.finish, from, shifts, to);
  for (const int64_t index : infinite) to[index] = std::numeric_limits<float>::infinity();
}

}  // namespace tessera::native
