// The constants from which unmeasured candidates get their prices.
#pragma once

namespace tessera {

// What belongs here: factors, shares and times of src/price that decide how promising an unmeasured
// candidate looks, and how much small graphs may measure. A test or a benchmark may change each in
// tuning::TuningTask or PricingOptions. Not here: the statistics of a time and what is known about
// the machine's variation (statistics.h), sizes of files and caches, and what belongs to a stored
// format or key.
struct PriceTuning {
  // --- Roofline bounds (bounds.h)

  // Convolutions count with their multiplications divided by this: Winograd's F(4x4, 3x3) needs 36
  // multiplications instead of 144. A smaller divisor raises bounds, and measures less.
  double convolution_speedup = 4;
  // The assumed speed of matrix units for bfloat16, relative to vector units for float32. A smaller
  // one raises the bounds of bfloat16.
  double bfloat16_speedup = 16;
  // The minimum time of any kernel; a view takes none.
  double min_bound_seconds = 2e-7;

  // --- Bounds by similar candidates (prices.h)

  // A bound that is derived from similar candidates is divided by a slack, because candidates of a
  // kind come about equally near to their rooflines, but not exactly. A larger slack measures more
  // candidates; a smaller one may miss the fastest.
  //
  // The slack if `several` or more candidates with equal ops, attributes and size class are known,
  // and if fewer are.
  double slack_of_several = 1.05;
  double slack_of_one = 1.15;
  int several = 3;
  // The slack if the similar candidates have another size, another kind of kernel, or both.
  double slack_of_other_sizes = 1.5;
  double slack_of_other_kinds = 1.5;
  double slack_of_others = 2;
  // Small kernels stay further from their bounds than large ones do. So the slack is this many
  // times as large for each size class by which the similar candidate is smaller.
  double slack_of_smaller_size = 4;
  // The width of a size class of work, in binary logarithms. Wider classes call more candidates
  // similar.
  double size_class_bits = 3;
  // Regions, parts of a graph that a library compiles as a whole, are all similar for this purpose.
  double slack_of_regions = 1.1;
  // The slack if the similar candidate computes the same product, with other ops fused to it. They
  // hardly change its time.
  double slack_of_same_product = 1.1;
  // The maximum factor by which a backend's estimate can raise the bound of an unknown candidate.
  // With 1, all algorithms of a backend look equally promising at first.
  double max_estimate_ratio = 4;
  // If the bound on all threads is below this, the bound on one thread does not follow from it: the
  // cost of starting threads may dominate.
  double thread_start_seconds = 2e-5;

  // --- Guesses (prices.h)

  // The assumed ratio of an unmeasured kernel's time to its bound, which is typical for kernels,
  // and the minimum guess. Larger values make unmeasured candidates less likely to be chosen.
  double guess_over_bound = 4;
  double guess_min_seconds = 1e-6;
  // A candidate that was skipped although others of its group were measured could not win, so it is
  // guessed to take this many times the slowest of these.
  double skipped_over_slowest = 2;

  // --- Times in plans (prices.h)

  // The time to enter and leave an arena of one thread; see src/base/threads/parallel_test.cc. It
  // is added to the price of a candidate on one thread of several.
  double arena_entry_seconds = 5e-7;
  // The range of the ratio of times in context to times alone. A wider range trusts extreme ratios,
  // which come from few kernels.
  double min_context_factor = 0.6;
  double max_context_factor = 2;
  // If the kernels of a family take this share of all time, its own ratio counts half, and that of
  // all kernels the other half. A larger share trusts the family less.
  double doubt_share = 0.1;

  // --- Small graphs (shared_costs.h)

  // The seconds that small graphs may spend on measuring at once, enough for two graphs that each
  // take their maximum.
  double max_allowance_seconds = 1;
  // The share of the time that passes by which the allowance grows. A program that meets small
  // graphs one after the other spends this share on measuring at most.
  double allowance_share = 0.25;
};

}  // namespace tessera
