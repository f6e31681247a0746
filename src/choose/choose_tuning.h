// The constants that decide which of several placements is chosen.
#pragma once

#include <cstdint>

namespace tessera {

// What belongs here: assumed times, ratios and limits of src/choose that change the choice. A test
// or a benchmark may change each in ChoiceRules or PlanOptions. Not here: weights that only break
// ties, units of the solver, and how much an error message lists.
struct ChooseTuning {
  // --- Choosing by price (choice.h)

  // A placement must be cheaper than the choice without prices by this factor, because the error of
  // measured prices of a whole model is about 3 %. A larger factor follows smaller differences,
  // which may be noise.
  double min_gain_ratio = 0.97;
  // The solver's work for one margin, in table cells: about half a second. A margin that takes
  // longer is not computed; more cells find more margins in a longer time.
  double margin_cells = 5e8;
  // A run is assumed to save this time for each byte that compiled kernels no longer read or write
  // (most of these bytes are in the caches), and for each step that it no longer has. Larger values
  // make compiling behind the runs look more worthwhile.
  double pass_seconds_per_byte = 1 / 40e9;
  double pass_seconds_per_step = 0.2e-6;

  // --- Assumed times of conversions and copies (placement_problem.h)

  // A conversion that was not measured: the speed at which bytes are read or written, and the time
  // that every conversion takes. Slower assumptions lead to plans with fewer conversions.
  double conversion_bytes_per_second = 10e9;
  double conversion_seconds = 2e-6;
  // A copy that a view forces takes `copy_seconds`, and for each byte the time at one of the
  // speeds: the first `copy_cached_bytes` are assumed to be in a core's own cache, because they
  // were just written, the others are not. Slower assumptions lead to plans with fewer copies.
  double copy_seconds = 0.5e-6;
  double copy_cached_bytes = 1 << 20;
  double copy_cached_bytes_per_second = 120e9;
  double copy_other_bytes_per_second = 30e9;
  // The time of each piece, a range of bytes that are contiguous on both sides. A larger time
  // avoids copies of many small pieces.
  double copy_piece_seconds = 0.5e-9;

  // --- Build times (price_offers.h)

  // Backends with regions that take long to build load a compiler at the first build. Measured
  // build times do not include this, because the compiler is already loaded. A plan of several
  // regions counts it for each of them. It matters only if build time counts.
  double region_load_seconds = 0.03;
  // The time to load a kernel that was compiled once and kept. Later processes, for which build
  // times are counted, build the kernel in this time.
  double compiled_load_seconds = 5e-4;

  // --- Fitting a memory budget (fit_budget.h)

  // The number of times that candidates are forbidden and the choice is repeated, before only the
  // placement that was found to fit remains. More rounds may find a faster plan, and each takes as
  // long as a choice.
  int budget_max_rounds = 12;
};

}  // namespace tessera
