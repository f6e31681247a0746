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

// The value is made in `sources` and converted, so that it is at hand in `layouts` (of those that
// somebody may want).
struct ValueChoice {
  std::vector<int> sources;  // ascending
  std::vector<int> layouts;  // ascending
  double seconds = 0;
};

// All choices for a value that is made in `sources`, when `wanted` are the layouts that somebody
// may want: one for each set of these, with the cheapest conversions, shared where that is cheaper,
// also through layouts that nobody wants. Without those where another choice has more layouts for
// no more. Both ascending; no sources: nowhere at hand.
std::vector<ValueChoice> list_choices(const PlacementProblem& problem, int value,
                                      const std::vector<int>& sources,
                                      const std::vector<int>& wanted);

// The conversions of a choice that list_choices() gave for `wanted`, in an order in which they can
// be made.
std::vector<PlacementConversion> conversions_of(const PlacementProblem& problem, int value,
                                                const std::vector<int>& wanted,
                                                const ValueChoice& choice);

}  // namespace tessera
