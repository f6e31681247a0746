// What steps take amid the others of their plan, written into the table of costs.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "choose/price_offers.h"
#include "engine/plan_runner.h"
#include "measure/time_plans.h"
#include "place/placement.h"
#include "tessera/tensor.h"

namespace tessera {

class StepRecorder {
 public:
  // Both must outlive it; prices are looked up anew by whoever wants what was recorded in them.
  StepRecorder(const PricedOffers& prices, tuning::CostTable& costs)
      : prices_(prices), costs_(costs) {}

  // Runs `runner`, which is of `placement`. Steps of equal work share a price: that of all of them
  // on the whole. What was recorded of them before is replaced. `watcher` as time_steps() has it.
  void record(const Placement& placement, PlanRunner& runner, std::span<const Tensor> inputs,
              const RunLimits& limits, const RunWatcher& watcher);

  bool has(const Placement& placement) const { return recorded_.contains(placement.chosen); }
  bool is_newest(const Placement& placement) const { return newest_ == placement.chosen; }
  // Of a run of the newest one: all of it, and what it takes besides its steps.
  double seconds() const { return seconds_; }
  double overhead_seconds() const { return overhead_seconds_; }

 private:
  const PricedOffers& prices_;
  tuning::CostTable& costs_;
  std::set<std::vector<int>> recorded_;  // what is chosen in each
  std::vector<int> newest_;
  double seconds_ = 0;
  double overhead_seconds_ = 0;
};

}  // namespace tessera
