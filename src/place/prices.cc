#include <algorithm>
#include <limits>

#include "place/placement.h"
#include "place/view_copies.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace

double conversion_price(const PlacementProblem& problem, int value, int from, int to) {
  if (from == to) return 0;
  if (at(value) < problem.conversion_prices.size()) {
    const std::vector<double>& row = problem.conversion_prices[at(value)];
    if (!row.empty()) return row[at(from * problem.layout_count + to)];
  }
  return problem.conversion_seconds[at(value)] * problem.conversion_hops[at(from)][at(to)];
}

int fed_layout(const PlacementProblem& problem, int value) {
  return problem.fed_layout.empty() ? 0 : problem.fed_layout[at(value)];
}

double predicted_seconds(const PlacementProblem& problem, const Placement& placement) {
  double total = 0;
  // By value: the layouts in which it is at hand; what no candidate makes is there from the start.
  std::vector<std::vector<int>> layouts(at(problem.value_count), {0});
  for (size_t value = 0; value < problem.fed_layout.size(); ++value) {
    layouts[value] = {problem.fed_layout[value]};
  }
  ViewCopies copies(problem);
  const auto obtain = [&](int value, int layout) {
    if (problem.is_constant[at(value)]) return;
    std::vector<int>& present = layouts[at(value)];
    double least = std::numeric_limits<double>::infinity();
    for (const int known : present) {
      least = std::min(least, conversion_price(problem, value, known, layout));
    }
    total += least;
    if (std::find(present.begin(), present.end(), layout) == present.end()) {
      present.push_back(layout);
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
