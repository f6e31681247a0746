#include "tune/carried_choice.h"

#include <cstdlib>
#include <utility>

namespace tessera::tuning {
namespace {

NamedCandidate named(const Subject& subject, int index) {
  const Candidate& candidate = subject.offers.candidates[static_cast<size_t>(index)];
  NamedCandidate name{.backend = candidate.backend(),
                      .algorithm = candidate.algorithm,
                      .threads = candidate.threads == 0 ? subject.threads : candidate.threads};
  for (const NodeId node : candidate.nodes) name.nodes.push_back(subject.graph[node].name);
  // Not by packs, whose form may depend on the shapes.
  for (const CandidateInput& port : candidate.inputs) {
    name.layouts += subject.layouts.name(port.layout) + " ";
  }
  name.layouts += "->";
  for (const CandidateOutput& port : candidate.outputs) {
    name.layouts += " " + subject.layouts.name(port.layout);
  }
  return name;
}

void scale(std::optional<Timing>& timing, double factor) {
  if (!timing) return;
  *timing = {.seconds = timing->seconds * factor,
             .low = timing->low * factor,
             .high = timing->high * factor,
             .rounds = 0};
}

// Of the same conversion, what was measured for the nearest size.
const ConversionCost* nearest(const std::map<ConversionCostKey, ConversionCost>& known,
                              const ConversionCostKey& wanted) {
  const ConversionCost* best = nullptr;
  int least = 0;
  for (const auto& [key, cost] : known) {
    ConversionCostKey alike = key;
    alike.size_class = wanted.size_class;
    if (alike != wanted || !cost.refusal.empty()) continue;
    const int distance = std::abs(key.size_class - wanted.size_class);
    if (best != nullptr && distance >= least) continue;
    best = &cost;
    least = distance;
  }
  return best;
}

}  // namespace

CarriedChoice carry(const PricedSubject& from, const CostTable& table,
                    const std::vector<int>& chosen) {
  CarriedChoice carried = carry(from.subject, chosen);
  carried.conversions = table.conversions;
  for (size_t index = 0; index < from.keys.size(); ++index) {
    if (!from.keys[index]) continue;
    const auto found = table.kernels.find(*from.keys[index]);
    if (found == table.kernels.end()) continue;
    // Of several that agree in all of it the first is meant, as everywhere.
    carried.costs.try_emplace(named(from.subject, static_cast<int>(index)),
                              CarriedCost{found->second, from.basis.kinds[index].bound_seconds});
  }
  return carried;
}

CarriedChoice carry(const Subject& from, const std::vector<int>& chosen) {
  CarriedChoice carried;
  for (const int index : chosen) {
    const Candidate& candidate = from.offers.candidates[static_cast<size_t>(index)];
    carried.has_measured_only = carried.has_measured_only || candidate.is_measured_only();
    carried.has_alone = carried.has_alone || candidate.threads == 1;
    carried.chosen.push_back(named(from, index));
  }
  return carried;
}

void add_in_proportion(const CarriedChoice& carried, const PricedSubject& to, CostTable& table) {
  for (size_t index = 0; index < to.keys.size(); ++index) {
    if (!to.keys[index] || table.kernels.contains(*to.keys[index])) continue;
    const auto found = carried.costs.find(named(to.subject, static_cast<int>(index)));
    if (found == carried.costs.end()) continue;
    const double before = found->second.bound_seconds;
    const double now = to.basis.kinds[index].bound_seconds;
    const double factor = before > 0 && now > 0 ? now / before : 1;
    Cost cost = found->second.cost;
    scale(cost.cold, factor);
    scale(cost.warm, factor);
    scale(cost.in_context, factor);
    table.kernels.emplace(*to.keys[index], std::move(cost));
  }
  for (const NeededConversion& needed : needed_conversions(to.subject)) {
    if (table.conversions.contains(needed.cost_key)) continue;
    const ConversionCost* cost = nearest(carried.conversions, needed.cost_key);
    // Its time is told for the bytes that were measured, which is what it is scaled by.
    if (cost != nullptr) table.conversions.emplace(needed.cost_key, *cost);
  }
}

std::vector<int> find_chosen(const CarriedChoice& carried, const Subject& to) {
  std::map<NamedCandidate, int> offered;
  for (size_t index = 0; index < to.offers.candidates.size(); ++index) {
    offered.emplace(named(to, static_cast<int>(index)), static_cast<int>(index));
  }
  std::vector<int> found;
  for (const NamedCandidate& name : carried.chosen) {
    const auto candidate = offered.find(name);
    if (candidate != offered.end()) found.push_back(candidate->second);
  }
  return found;
}

}  // namespace tessera::tuning
