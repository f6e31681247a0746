#include "price/reused_choice.h"

#include <cstdlib>
#include <utility>

#include "tessera/backend.h"

namespace tessera::tuning {
namespace {

NamedCandidate named(const TuningTask& task, int index) {
  const Candidate& candidate = task.offers.candidates[static_cast<size_t>(index)];
  NamedCandidate name{.nodes = {}, .id = id_of(candidate, task.layouts, task.threads)};
  name.id.nodes.clear();
  for (const NodeId node : candidate.nodes) name.nodes.push_back(task.graph[node].name);
  const auto layout_of = [&](const auto& port) { return task.layouts.name(port.layout); };
  name.id.ports = plugin::ports_text(candidate.inputs, candidate.outputs, layout_of, layout_of);
  return name;
}

void scale(std::optional<Timing>& timing, double factor) {
  if (!timing) return;
  *timing = {.seconds = timing->seconds * factor,
             .low = timing->low * factor,
             .high = timing->high * factor,
             .rounds = 0};
}

// The measurement of the same conversion with the nearest size.
const ConversionCost* nearest(const std::map<ConversionCostKey, ConversionCost>& known,
                              const ConversionCostKey& wanted) {
  const ConversionCost* best = nullptr;
  int min_distance = 0;
  for (const auto& [key, cost] : known) {
    ConversionCostKey alike = key;
    alike.size_class = wanted.size_class;
    if (alike != wanted || !cost.refusal.empty()) continue;
    const int distance = std::abs(key.size_class - wanted.size_class);
    if (best != nullptr && distance >= min_distance) continue;
    best = &cost;
    min_distance = distance;
  }
  return best;
}

}  // namespace

ReusedChoice make_reusable(const PricedTask& from, const CostTable& table,
                           const std::vector<int>& chosen) {
  ReusedChoice reused = make_reusable(from.task, chosen);
  reused.conversions = table.conversions;
  for (size_t index = 0; index < from.keys.size(); ++index) {
    if (!from.keys[index]) continue;
    const auto found = table.kernels.find(*from.keys[index]);
    if (found == table.kernels.end()) continue;
    // If several candidates have the same key, the first one is meant, as everywhere.
    reused.costs.try_emplace(named(from.task, static_cast<int>(index)),
                             ReusedCost{found->second, from.basis.kinds[index].bound_seconds});
  }
  return reused;
}

ReusedChoice make_reusable(const TuningTask& from, const std::vector<int>& chosen) {
  ReusedChoice reused;
  for (const int index : chosen) {
    const Candidate& candidate = from.offers.candidates[static_cast<size_t>(index)];
    reused.has_measured_only = reused.has_measured_only || candidate.is_measured_only();
    reused.has_single_threaded = reused.has_single_threaded || candidate.threads == 1;
    reused.chosen.push_back(named(from, index));
  }
  return reused;
}

void add_scaled_costs(const ReusedChoice& reused, const PricedTask& to, CostTable& table) {
  for (size_t index = 0; index < to.keys.size(); ++index) {
    if (!to.keys[index] || table.kernels.contains(*to.keys[index])) continue;
    const auto found = reused.costs.find(named(to.task, static_cast<int>(index)));
    if (found == reused.costs.end()) continue;
    const double before = found->second.bound_seconds;
    const double now = to.basis.kinds[index].bound_seconds;
    const double factor = before > 0 && now > 0 ? now / before : 1;
    Cost cost = found->second.cost;
    scale(cost.cold, factor);
    scale(cost.warm, factor);
    scale(cost.in_context, factor);
    table.kernels.emplace(*to.keys[index], std::move(cost));
  }
  for (const NeededConversion& needed : needed_conversions(to.task)) {
    if (table.conversions.contains(needed.cost_key)) continue;
    const ConversionCost* cost = nearest(reused.conversions, needed.cost_key);
    // Its time is relative to the measured size, from which it is scaled.
    if (cost != nullptr) table.conversions.emplace(needed.cost_key, *cost);
  }
}

std::vector<int> find_reused(const ReusedChoice& reused, const TuningTask& to) {
  std::map<NamedCandidate, int> offered;
  for (size_t index = 0; index < to.offers.candidates.size(); ++index) {
    offered.emplace(named(to, static_cast<int>(index)), static_cast<int>(index));
  }
  std::vector<int> found;
  for (const NamedCandidate& name : reused.chosen) {
    const auto candidate = offered.find(name);
    if (candidate != offered.end()) found.push_back(candidate->second);
  }
  return found;
}

}  // namespace tessera::tuning
