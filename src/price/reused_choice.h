// Transfers measurements and choices from one graph to the same network with other shapes, so that
// nothing has to be measured again.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "price/cost_table.h"
#include "price/groups.h"
#include "price/prices.h"

namespace tessera::tuning {

// Identifies a candidate independently of shapes.
struct NamedCandidate {
  std::vector<std::string> nodes;  // names
  CandidateId id;  // without nodes; `ports` without packs, whose format may depend on the shapes
  auto operator<=>(const NamedCandidate&) const = default;
};

struct ReusedCost {
  Cost cost;
  double bound_seconds = 0;  // of the measured work
};

struct ReusedChoice {
  std::map<NamedCandidate, ReusedCost> costs;  // of measured or refused candidates
  std::map<ConversionCostKey, ConversionCost> conversions;
  std::vector<NamedCandidate> chosen;  // in an executable order
  // Whether some of these require a measurement; whether some run on one thread of several.
  bool has_measured_only = false;
  bool has_single_threaded = false;
};

// A tuning task with the keys of its candidates and the basis of their prices.
struct PricedTask {
  const TuningTask& task;
  const std::vector<std::optional<CostKey>>& keys;
  const PriceBasis& basis;
};

// The knowledge about `from`, whose chosen candidates are `chosen`.
ReusedChoice make_reusable(const PricedTask& from, const CostTable& table,
                           const std::vector<int>& chosen);

// Same as make_reusable() with costs, for the choice alone, if no costs are known.
ReusedChoice make_reusable(const TuningTask& from, const std::vector<int>& chosen);

// Adds to `table`, for candidates and conversions of `to` that it lacks, the data in `reused`:
// times scaled in proportion to the work, with 0 rounds, because they were not measured.
void add_scaled_costs(const ReusedChoice& reused, const PricedTask& to, CostTable& table);

// The indices of chosen candidates that are offered for `to`; as many as were chosen if all are.
std::vector<int> find_reused(const ReusedChoice& reused, const TuningTask& to);

}  // namespace tessera::tuning
