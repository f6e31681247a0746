// In which layouts a value can be at hand, and what the conversions cost that bring it there.
#pragma once

#include <vector>

#include "place/placement.h"

namespace tessera {

struct PlacementConversion {
  int value = 0;
  int from = 0;
  int to = 0;
};

// Of a value that is nowhere at hand: it is inside of a group.
constexpr int kNoSource = -1;

// The value is made in `source` and converted, so that it is at hand in `layouts` (of those that
// somebody may want).
struct ValueChoice {
  int source = kNoSource;
  std::vector<int> layouts;  // ascending
  double seconds = 0;
};

// All choices for a value that is made in `source`, when `wanted` (ascending) are the layouts that
// somebody may want: one for each set of these, with the cheapest conversions, shared where that is
// cheaper, also through layouts that nobody wants. Without those where another choice has more
// layouts for no more.
std::vector<ValueChoice> list_choices(const PlacementProblem& problem, int value, int source,
                                      const std::vector<int>& wanted);

// The conversions of a choice that list_choices() gave for `wanted`, in an order in which they can
// be made.
std::vector<PlacementConversion> conversions_of(const PlacementProblem& problem, int value,
                                                const std::vector<int>& wanted,
                                                const ValueChoice& choice);

}  // namespace tessera
