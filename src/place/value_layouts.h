// The sets of layouts in which a value can be available, and the price of the necessary
// conversions.
#pragma once

#include <vector>

#include "place/placement.h"

namespace tessera {

struct PlacementConversion {
  int value = 0;
  int from = 0;
  int to = 0;
};

// Source of a value that exists nowhere, because it is internal to a group.
constexpr int kNoSource = -1;

// The value is produced in `source` and converted, so that it is available in `layouts`, a subset
// of the wanted ones.
struct ValueChoice {
  int source = kNoSource;
  std::vector<int> layouts;  // ascending
  double seconds = 0;
};

// Returns all choices for a value that is produced in `source`. `wanted` (ascending) are the
// layouts that any candidate may need. There is one choice for each subset of `wanted`, with the
// cheapest conversions; these share intermediate results if that is cheaper, also in layouts
// outside of `wanted`. Choices are omitted if another one has more layouts at no higher price.
std::vector<ValueChoice> list_choices(const PlacementProblem& problem, int value, int source,
                                      const std::vector<int>& wanted);

// Returns the conversions of a choice from list_choices() for the same `wanted`, in an order in
// which they can run.
std::vector<PlacementConversion> conversions_of(const PlacementProblem& problem, int value,
                                                const std::vector<int>& wanted,
                                                const ValueChoice& choice);

}  // namespace tessera
