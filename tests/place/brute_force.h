// Finds the minimum cost of a small problem by exhaustive search, for tests of the solver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/at.h"
#include "place/placement.h"
#include "solver/cost_network.h"

namespace tessera {

// Tries every set of candidates, and every order of conversions of each value.
class BruteForce {
 public:
  explicit BruteForce(const PlacementProblem& problem)
      : problem_(problem),
        min_with_(problem.candidates.size(), kForbidden),
        min_without_(problem.candidates.size(), kForbidden) {}

  double least() {
    std::vector<int> chosen;
    visit(0, chosen);
    return least_;
  }
  // By candidate: the minimum cost of placements with it, and of placements without it. Valid after
  // least().
  const std::vector<double>& min_with() const { return min_with_; }
  const std::vector<double>& min_without() const { return min_without_; }

 private:
  void visit(size_t next, std::vector<int>& chosen) {
    if (next == problem_.candidates.size()) {
      if (is_legal(chosen)) note(chosen, seconds(chosen));
      return;
    }
    visit(next + 1, chosen);
    if (problem_.is_forbidden[next]) return;
    chosen.push_back(static_cast<int>(next));
    if (!is_too_often(chosen)) visit(next + 1, chosen);
    chosen.pop_back();
  }

  void note(const std::vector<int>& chosen, double seconds) {
    least_ = std::min(least_, seconds);
    for (size_t index = 0; index < min_with_.size(); ++index) {
      const bool has = std::find(chosen.begin(), chosen.end(), index) != chosen.end();
      double& least = (has ? min_with_ : min_without_)[index];
      least = std::min(least, seconds);
    }
  }

  bool is_too_often(const std::vector<int>& chosen) const {
    std::vector<int> times(problem_.nodes.size(), 0);
    for (const int index : chosen) {
      for (const int node : problem_.candidates[at(index)].nodes) {
        if (++times[at(node)] > 1) return true;
      }
    }
    return false;
  }

  bool is_legal(const std::vector<int>& chosen) const {
    std::vector<bool> is_covered(problem_.nodes.size(), false);
    for (const int index : chosen) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      if (candidate.workspace_bytes > problem_.workspace_bytes_limit) return false;
      for (const int node : candidate.nodes) is_covered[at(node)] = true;
    }
    if (std::count(is_covered.begin(), is_covered.end(), false) > 0) return false;
    return can_run(chosen);
  }

  bool can_run(std::vector<int> waiting) const {
    while (!waiting.empty()) {
      const auto is_ready = [&](int index) {
        const auto& inputs = problem_.candidates[at(index)].inputs;
        return std::none_of(inputs.begin(), inputs.end(), [&](const PlacementPort& input) {
          return std::any_of(waiting.begin(), waiting.end(), [&](int other) {
            const auto& outputs = problem_.candidates[at(other)].outputs;
            return std::any_of(outputs.begin(), outputs.end(), [&](const PlacementPort& output) {
              return output.value == input.value;
            });
          });
        });
      };
      const auto next = std::find_if(waiting.begin(), waiting.end(), is_ready);
      if (next == waiting.end()) return false;
      waiting.erase(next);
    }
    return true;
  }

  double seconds(const std::vector<int>& chosen) const {
    double sum = 0;
    for (const int index : chosen) sum += problem_.candidates[at(index)].seconds;
    for (int value = 0; value < problem_.value_count; ++value) {
      if (!problem_.is_constant[at(value)]) sum += conversion_seconds(value, chosen);
    }
    return sum;
  }

  double conversion_seconds(int value, const std::vector<int>& chosen) const {
    std::vector<bool> is_at_hand(at(problem_.layout_count), false);
    std::vector<bool> is_wanted(at(problem_.layout_count), false);
    is_at_hand[0] =
        std::none_of(problem_.nodes.begin(), problem_.nodes.end(), [&](const PlacementNode& node) {
          return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
        });
    is_wanted[0] = std::find(problem_.results.begin(), problem_.results.end(), value) !=
                   problem_.results.end();
    for (const int index : chosen) {
      for (const PlacementPort& port : problem_.candidates[at(index)].outputs) {
        if (port.value == value) is_at_hand[at(port.layout)] = true;
      }
      for (const PlacementPort& port : problem_.candidates[at(index)].inputs) {
        if (port.value == value) is_wanted[at(port.layout)] = true;
      }
    }
    return complete(value, is_at_hand, is_wanted);
  }

  // The minimum seconds of conversions until the value exists in every wanted layout, found by
  // trying every next conversion.
  double complete(int value, const std::vector<bool>& is_at_hand,
                  const std::vector<bool>& is_wanted) const {
    bool is_done = true;
    for (size_t layout = 0; layout < is_wanted.size(); ++layout) {
      is_done = is_done && (!is_wanted[layout] || is_at_hand[layout]);
    }
    if (is_done) return 0;
    double least = kForbidden;
    for (int from = 0; from < problem_.layout_count; ++from) {
      for (int to = 0; to < problem_.layout_count; ++to) {
        if (!is_at_hand[at(from)] || is_at_hand[at(to)]) continue;
        const double price = conversion_price(problem_, value, from, to);
        if (price == kForbidden) continue;
        std::vector<bool> more = is_at_hand;
        more[at(to)] = true;
        least = std::min(least, price + complete(value, more, is_wanted));
      }
    }
    return least;
  }

  const PlacementProblem& problem_;
  double least_ = kForbidden;
  std::vector<double> min_with_;
  std::vector<double> min_without_;
};

}  // namespace tessera
