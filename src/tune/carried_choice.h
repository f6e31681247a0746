// From one graph to the same network with other shapes: what was measured and chosen there serves
// here, so that nothing is measured anew.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/cost_table.h"
#include "tune/groups.h"
#include "tune/prices.h"

namespace tessera::tuning {

// A candidate by what it is, whatever the shapes: by the names of its nodes and values' layouts.
struct NamedCandidate {
  std::vector<std::string> nodes;
  std::string backend;
  std::string algorithm;
  std::string layouts;  // of its inputs and outputs, in their order
  int threads = 1;
  auto operator<=>(const NamedCandidate&) const = default;
};

struct CarriedCost {
  Cost cost;
  double bound_seconds = 0;  // of the work that it was measured on
};

struct CarriedChoice {
  std::map<NamedCandidate, CarriedCost> costs;  // of what was measured or refused
  std::map<ConversionCostKey, ConversionCost> conversions;
  std::vector<NamedCandidate> chosen;  // in an order in which they can run
  // Whether some of these are chosen only where they were measured; run on one thread of several.
  bool has_measured_only = false;
  bool has_alone = false;
};

// What was priced, by candidate of a subject.
struct PricedSubject {
  const Subject& subject;
  const std::vector<std::optional<CostKey>>& keys;
  const PriceBasis& basis;
};

// What is known of `from`, of whose candidates `chosen` were chosen.
CarriedChoice carry(const PricedSubject& from, const CostTable& table,
                    const std::vector<int>& chosen);

// The same of the choice alone, where nothing is known of costs.
CarriedChoice carry(const Subject& from, const std::vector<int>& chosen);

// Adds to `table`, for candidates and conversions of `to` that it does not know, what `carried` has
// of them: times in proportion to the work, with 0 rounds, as nobody measured them.
void add_in_proportion(const CarriedChoice& carried, const PricedSubject& to, CostTable& table);

// Those of the chosen ones that are offered for `to`, by index. As many as were chosen where all
// are.
std::vector<int> find_chosen(const CarriedChoice& carried, const Subject& to);

}  // namespace tessera::tuning
