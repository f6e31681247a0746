#include "price/shared_costs.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tessera::tuning {
namespace {

// What may be spent at once: by two graphs that each take all they may. Small graphs of a program
// that meets them one after the other are all measured fully if this share of its time suffices.
constexpr double kMaxSeconds = 1;
constexpr double kShareOfTime = 0.25;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

SharedCosts::SharedCosts(std::function<double()> now)
    : now_(now ? std::move(now) : steady_seconds),
      allowance_seconds_(kMaxSeconds),
      counted_seconds_(now_()) {}

double SharedCosts::allowance_seconds() {
  const std::lock_guard lock(mutex_);
  const double now = now_();
  allowance_seconds_ += kShareOfTime * (now - counted_seconds_);
  allowance_seconds_ = std::min(allowance_seconds_, kMaxSeconds);
  counted_seconds_ = now;
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
