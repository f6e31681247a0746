#include "price/cost_table.h"

#include <utility>

namespace tessera::tuning {
namespace {

void take(std::optional<Timing>& timing, const std::optional<Timing>& newer) {
  if (newer) timing = newer;
}

}  // namespace

void merge(CostTable& table, const CostTable& newer) {
  if (!newer.machine.empty()) table.machine = newer.machine;
  for (const auto& [key, cost] : newer.kernels) {
    const auto [entry, is_new] = table.kernels.emplace(key, cost);
    if (is_new) continue;
    const Cost& known = entry->second;
    Cost merged = known.is_verified_here && !cost.is_verified_here ? known : cost;
    if (merged.refusal.empty())
      merged.refusal = cost.refusal.empty() ? known.refusal : cost.refusal;
    merged.cold = entry->second.cold;
    merged.warm = entry->second.warm;
    merged.in_context = entry->second.in_context;
    take(merged.cold, cost.cold);
    take(merged.warm, cost.warm);
    take(merged.in_context, cost.in_context);
    entry->second = std::move(merged);
  }
  for (const auto& [key, cost] : newer.conversions) table.conversions[key] = cost;
  for (const auto& [key, plan] : newer.plans) table.plans[key] = plan;
}

int size_class_of(int64_t bytes) {
  int result = 0;
  while ((bytes >>= 1) > 0) ++result;
  return result;
}

}  // namespace tessera::tuning
