#include <algorithm>
#include <cmath>
#include <limits>

#include "base/containers/at.h"
#include "place/placement.h"
#include "place/view_copies.h"

namespace tessera {

double conversion_price(const PlacementProblem& problem, int value, int from, int to) {
  if (from == to) return 0;
  if (at(value) < problem.conversion_prices.size()) {
    const std::vector<double>& row = problem.conversion_prices[at(value)];
    if (!row.empty()) return row[at(from * problem.layout_count + to)];
  }
  return problem.conversion_seconds[at(value)] * problem.conversion_hops[at(from)][at(to)];
}

std::vector<int> cheapest_conversions(int layout_count, const std::vector<int>& present, int wanted,
                                      const std::function<double(int from, int to)>& price) {
  // Dijkstra; a linear search for the nearest is enough for a dozen layouts.
  std::vector<double> distance(at(layout_count), std::numeric_limits<double>::infinity());
  std::vector<int> before(at(layout_count), kNoIndex);
  std::vector<bool> is_done(at(layout_count), false);
  for (const int layout : present) distance[at(layout)] = 0;
  while (true) {
    int nearest = kNoIndex;
    for (int layout = 0; layout < layout_count; ++layout) {
      if (is_done[at(layout)] || !std::isfinite(distance[at(layout)])) continue;
      if (nearest == kNoIndex || distance[at(layout)] < distance[at(nearest)]) nearest = layout;
    }
    if (nearest == kNoIndex) return {};
    if (nearest == wanted) break;
    is_done[at(nearest)] = true;
    for (int to = 0; to < layout_count; ++to) {
      const double through = distance[at(nearest)] + price(nearest, to);
      if (through >= distance[at(to)]) continue;
      distance[at(to)] = through;
      before[at(to)] = nearest;
    }
  }
  std::vector<int> way = {wanted};
  while (before[at(way.back())] != kNoIndex) way.push_back(before[at(way.back())]);
  std::reverse(way.begin(), way.end());
  return way;
}

int fed_layout(const PlacementProblem& problem, int value) {
  return problem.fed_layout.empty() ? 0 : problem.fed_layout[at(value)];
}

double predicted_seconds(const PlacementProblem& problem, const Placement& placement) {
  double total = 0;
  // By value: the layouts in which it exists. Values that no candidate produces exist from the
  // start.
  std::vector<std::vector<int>> layouts(at(problem.value_count), {0});
  for (size_t value = 0; value < problem.fed_layout.size(); ++value) {
    layouts[value] = {problem.fed_layout[value]};
  }
  ViewCopies copies(problem);
  const auto obtain = [&](int value, int layout) {
    if (problem.is_constant[at(value)]) return;
    std::vector<int>& present = layouts[at(value)];
    const auto price = [&](int from, int to) { return conversion_price(problem, value, from, to); };
    const std::vector<int> way = cheapest_conversions(problem.layout_count, present, layout, price);
    if (way.empty()) total = std::numeric_limits<double>::infinity();
    for (size_t step = 1; step < way.size(); ++step) {
      total += price(way[step - 1], way[step]);
      present.push_back(way[step]);
    }
  };
  for (const int index : placement.chosen) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    total += candidate.seconds + copies.seconds(candidate);
    copies.take(candidate);
    for (const PlacementPort& port : candidate.inputs) obtain(port.value, port.layout);
    for (const PlacementPort& port : candidate.outputs) layouts[at(port.value)] = {port.layout};
  }
  for (const int value : problem.results) obtain(value, fed_layout(problem, value));
  return total;
}

}  // namespace tessera
