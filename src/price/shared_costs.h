// Costs shared by all executors of a process, across models.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "price/cost_table.h"

namespace tessera::tuning {

// Thread-safe.
class SharedCosts {
 public:
  // About this number of costs of kernels and plans are kept, the most recently used ones. One
  // takes about a kilobyte. Costs of conversions are few, and all are kept.
  static constexpr size_t kMaxCosts = 32'768;

  // `now` returns the seconds since any fixed time; by default, those of a steady clock.
  explicit SharedCosts(std::function<double()> now = {}, size_t max_costs = kMaxCosts);

  // Adds `costs`; see merge().
  void add(const CostTable& costs);

  // Adds to `table` the known costs of the candidates with these keys, of conversions, and of the
  // plan. Entries of other graphs are left out, so that the cost of a bind depends on its own graph
  // only.
  void look_up(const std::vector<std::optional<CostKey>>& keys, const std::optional<PlanKey>& plan,
               CostTable& table);

  // The number of costs of kernels and plans.
  size_t size() const;

  // The seconds that the next small graph may spend on measuring. Graphs that run quickly get a
  // small budget, individually and in total: otherwise a program that keeps meeting new graphs
  // would spend most of its time measuring. The first few get all they want; later ones share a
  // part of the time that passes. Report the time used to spend().
  double allowance_seconds();
  void spend(double seconds);

 private:
  // Makes the costs with these keys count as used.
  void renew(const CostKey& key);
  void renew(const PlanKey& key);
  void forget_oldest();

  const size_t max_costs_;
  mutable std::mutex mutex_;
  // Used costs are in `recent_`. If these are half of the maximum, they replace `older_`, which is
  // forgotten.
  CostTable recent_;
  CostTable older_;
  std::function<double()> now_;
  double allowance_seconds_;
  double counted_seconds_;  // the time, of `now_`, up to which the allowance has grown
};

}  // namespace tessera::tuning
