#include "ops/contrib/row_normalization.h"

#include <cmath>

#include "base/threads/parallel_slots.h"
#include "ops/contrib/contrib.h"

namespace tessera::ops {
namespace {

// The moments around the mean, or those around zero.
Moments moments_of_line(std::span<const double> line, bool has_mean) {
  if (has_mean) return moments_of(line);
  CompensatedSum squares;
  for (const double element : line) squares.add(element * element);
  return {.mean = 0, .variance = squares.value() / static_cast<double>(line.size())};
}

}  // namespace

void normalize_lines(const KernelCall& call, const RowNormalization& normalization,
                     FunctionRef<void(int64_t row, std::span<double> line)> read,
                     FunctionRef<void(int64_t row, std::span<const double> line)> write) {
  const int64_t rows = normalization.rows;
  if (rows == 0) return;
  const int64_t grain = row_grain(normalization.columns);
  const auto length = static_cast<size_t>(normalization.columns);
  const auto slots = static_cast<size_t>(slot_count(call.pool, rows, grain));
  std::pmr::vector<double> lines(slots * length, &call.scratch);
  const auto count = static_cast<size_t>(rows);
  std::pmr::vector<double> means(call.has_output(normalization.mean) ? count : 0, &call.scratch);
  std::pmr::vector<double> inverses(call.has_output(normalization.inverse) ? count : 0,
                                    &call.scratch);
  const auto normalize_row = [&](std::span<double> line, int64_t row) {
    read(row, line);
    const Moments moments = moments_of_line(line, normalization.has_mean);
    const double factor = moments.inverse_deviation(normalization.epsilon);
    if (!means.empty()) means[static_cast<size_t>(row)] = moments.mean;
    if (!inverses.empty()) inverses[static_cast<size_t>(row)] = factor;
    for (double& element : line) element = (element - moments.mean) * factor;
    write(row, line);
  };
  parallel_for_in_slots(call.pool, rows, grain, [&](int64_t slot, int64_t begin, int64_t end) {
    const std::span<double> line =
        std::span(lines).subspan(static_cast<size_t>(slot) * length, length);
    for (int64_t row = begin; row < end; ++row) normalize_row(line, row);
  });
  if (!means.empty()) store_doubles(means, call.outputs[normalization.mean]);
  if (!inverses.empty()) store_doubles(inverses, call.outputs[normalization.inverse]);
}

}  // namespace tessera::ops
