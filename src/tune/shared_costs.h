// Costs that the executors of one process share, whatever their models: what one of them measured,
// the others know.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "tune/cost_table.h"

namespace tessera::tuning {

// Safe from any thread.
class SharedCosts {
 public:
  SharedCosts();

  // Takes up what `costs` knows; see merge().
  void add(const CostTable& costs);

  // Puts into `table` what is known of the candidates of these keys, of conversions, and of the
  // plan. What concerns other graphs stays out, so that a bind costs what its own graph is worth.
  void look_up(const std::vector<std::optional<CostKey>>& keys, const std::optional<PlanKey>& plan,
               CostTable& table) const;

  // Graphs that take little time get little, each, and all together: whoever meets a new one every
  // moment would wait for measurements most of the time. So much the next one may take; what it
  // takes is to be told to spend().
  double allowance_seconds();
  void spend(double seconds);

 private:
  mutable std::mutex mutex_;
  CostTable costs_;
  double allowance_seconds_;
};

}  // namespace tessera::tuning
