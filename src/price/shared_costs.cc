#include "price/shared_costs.h"

#include <algorithm>

namespace tessera::tuning {
namespace {

// The initial budget, and what each further graph adds: about a third of the time to load and bind
// one.
constexpr double kFirstSeconds = 0.1;
constexpr double kSecondsForEach = 0.0005;

}  // namespace

SharedCosts::SharedCosts() : allowance_seconds_(kFirstSeconds) {}

double SharedCosts::allowance_seconds() {
  const std::lock_guard lock(mutex_);
  allowance_seconds_ += kSecondsForEach;
  return std::max(0.0, allowance_seconds_);
}

void SharedCosts::spend(double seconds) {
  const std::lock_guard lock(mutex_);
  allowance_seconds_ -= seconds;
}

void SharedCosts::add(const CostTable& costs) {
  const std::lock_guard lock(mutex_);
  merge(costs_, costs);
}

void SharedCosts::look_up(const std::vector<std::optional<CostKey>>& keys,
                          const std::optional<PlanKey>& plan, CostTable& table) const {
  const std::lock_guard lock(mutex_);
  if (costs_.kernels.empty() && costs_.conversions.empty()) return;
  CostTable known{.machine = costs_.machine, .conversions = costs_.conversions};
  for (const std::optional<CostKey>& key : keys) {
    if (!key) continue;
    const auto found = costs_.kernels.find(*key);
    if (found != costs_.kernels.end()) known.kernels.insert(*found);
  }
  if (plan) {
    const auto found = costs_.plans.find(*plan);
    if (found != costs_.plans.end()) known.plans.insert(*found);
  }
  merge(table, known);
}

}  // namespace tessera::tuning
