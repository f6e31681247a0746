// Times steps in context, as steps of whole plans, and writes the times into the table of costs.
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
  // Both must outlive this. `prices` include what was recorded only after they are looked up again.
  StepRecorder(const PricedOffers& prices, tuning::CostTable& costs)
      : prices_(prices), costs_(costs) {}

  // Runs `runner`, which must run the plan of `placement`, and replaces the times in context of its
  // candidates. Steps with equal keys get the mean of their times. For `watcher` see time_steps().
  void record(const Placement& placement, PlanRunner& runner, std::span<const Tensor> inputs,
              const RunLimits& limits, const RunWatcher& watcher);

  bool has(const Placement& placement) const { return recorded_.contains(placement.chosen); }
  bool is_newest(const Placement& placement) const { return newest_ == placement.chosen; }
  // Of the newest recording: the time of a whole run, and of the part that is not in its steps.
  double seconds() const { return seconds_; }
  double overhead_seconds() const { return overhead_seconds_; }

 private:
  const PricedOffers& prices_;
  tuning::CostTable& costs_;
  std::set<std::vector<int>> recorded_;  // the chosen candidates of each
  std::vector<int> newest_;
  double seconds_ = 0;
  double overhead_seconds_ = 0;
};

}  // namespace tessera
