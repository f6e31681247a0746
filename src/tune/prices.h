// From a CostTable to the prices that a choice is made by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/cost_table.h"
#include "tune/groups.h"

namespace tessera::tuning {

// What one candidate is worth.
struct CandidatePrice {
  double seconds = 0;
  // What the table has of it; null: nothing, and `seconds` is a guess.
  const Cost* cost = nullptr;
  // The time in it that counts for this graph; null where it was refused.
  const Timing* timing = nullptr;
  bool is_refused() const { return cost != nullptr && !cost->refusal.empty(); }
};

struct Prices {
  std::vector<CandidatePrice> candidates;  // by candidate
  // By value, from layout a to b at a * layouts + b: infinity where nothing makes or reads it in
  // one of them. Empty for what no route leads to or from.
  std::vector<std::vector<double>> conversions;
};

// What is not measured gets a guess. Where others of its group were measured, it was left out
// because it could not win: it costs twice the dearest of these. Else its bound by the table of
// assumed_speed(), four times, which is what kernels reach on the whole, or what its backend says
// where that is more. A conversion of another size than the one measured costs in proportion; one
// that is not measured, `unmeasured` (of its bytes). What runs on one thread of several costs what
// it takes to leave the others besides. `table` must outlive the result.
Prices look_up_prices(const Subject& subject, const std::vector<TuneGroup>& groups,
                      const std::vector<std::optional<CostKey>>& keys, const CostTable& table,
                      double (*unmeasured)(int64_t bytes));

}  // namespace tessera::tuning
