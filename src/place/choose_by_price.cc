#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/containers/at.h"
#include "place/cover.h"
#include "place/explain_violation.h"
#include "place/placement.h"
#include "solver/cost_network.h"

namespace tessera {
namespace {

// Price of a node that no candidate computes alone. It is finite, so that differences are never
// NaN.
constexpr double kUncomputableSeconds = 1e6;
// A safety limit: the local search converges in far fewer sweeps.
constexpr int kMaxSweeps = 50;

// All candidates that may be used for one set of nodes.
struct Group {
  std::vector<int> nodes;
  std::vector<int> candidates;
  double min_seconds = kForbidden;
};

std::vector<Group> collect_groups(const PlacementProblem& problem) {
  std::map<std::vector<int>, Group> by_nodes;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    if (!problem.is_forbidden.empty() && problem.is_forbidden[index]) continue;
    const PlacementCandidate& candidate = problem.candidates[index];
    Group& group = by_nodes[candidate.nodes];
    group.nodes = candidate.nodes;
    group.candidates.push_back(static_cast<int>(index));
    group.min_seconds = std::min(group.min_seconds, candidate.seconds);
  }
  std::vector<Group> groups;
  for (auto& [nodes, group] : by_nodes) groups.push_back(std::move(group));
  return groups;
}

// Visits the nodes in order and assigns to each uncovered one the group with the lowest price minus
// what its other nodes would cost alone.
Cover cover_greedily(const PlacementProblem& problem, const std::vector<Group>& groups) {
  std::vector<double> alone(problem.nodes.size(), kUncomputableSeconds);
  std::vector<std::vector<const Group*>> around(problem.nodes.size());
  for (const Group& group : groups) {
    for (const int node : group.nodes) around[at(node)].push_back(&group);
    if (group.nodes.size() == 1) alone[at(group.nodes[0])] = group.min_seconds;
  }
  Cover cover(problem);
  for (int node = 0; node < static_cast<int>(problem.nodes.size()); ++node) {
    if (cover.is_covered(node)) continue;
    std::vector<std::pair<double, const Group*>> ways;
    for (const Group* group : around[at(node)]) {
      double price = group->min_seconds;
      for (const int other : group->nodes) price -= other == node ? 0 : alone[at(other)];
      ways.emplace_back(price, group);
    }
    std::stable_sort(ways.begin(), ways.end(),
                     [](const auto& left, const auto& right) { return left.first < right.first; });
    for (const auto& [price, group] : ways) {
      if (cover.try_accept(group->nodes)) break;
    }
  }
  return cover;
}

// Local search for one cover: changes the candidates of its groups until nothing gets cheaper.
class Descent {
 public:
  Descent(const PlacementProblem& problem, const std::vector<Group>& groups, const Cover& cover)
      : problem_(problem),
        producer_(at(problem.value_count), kNoIndex),
        readers_(producer_.size()) {
    for (const int index : cover.order()) {
      const std::vector<int>& nodes = cover.groups()[at(index)];
      const auto found = std::lower_bound(
          groups.begin(), groups.end(), nodes,
          [](const Group& group, const std::vector<int>& wanted) { return group.nodes < wanted; });
      steps_.push_back(&*found);
    }
    is_result_.assign(producer_.size(), false);
    for (const int value : problem.results) is_result_[at(value)] = true;
    for (size_t step = 0; step < steps_.size(); ++step) note_values(static_cast<int>(step));
  }

  // Starts from the candidates that have the most ports in `layout`.
  Placement run(int layout) {
    chosen_.clear();
    for (const Group* group : steps_) chosen_.push_back(best_in(*group, layout));
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      bool is_changed = false;
      for (size_t step = 0; step < steps_.size(); ++step) is_changed |= improve(step);
      if (!is_changed) break;
    }
    return {chosen_};
  }

 private:
  // Merges the ports of all candidates of a group: they produce the same values for other groups,
  // but some read fewer constants.
  void note_values(int step) {
    for (const int index : steps_[at(step)]->candidates) {
      for (const PlacementPort& port : problem_.candidates[at(index)].outputs) {
        producer_[at(port.value)] = step;
      }
      for (const PlacementPort& port : problem_.candidates[at(index)].inputs) {
        std::vector<int>& readers = readers_[at(port.value)];
        if (readers.empty() || readers.back() != step) readers.push_back(step);
      }
    }
  }

  int best_in(const Group& group, int layout) const {
    int best = kNoIndex;
    std::pair<int, double> least;
    for (const int index : group.candidates) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      std::pair<int, double> rank = {0, candidate.seconds};
      for (const auto* ports : {&candidate.inputs, &candidate.outputs}) {
        for (const PlacementPort& port : *ports) {
          if (!problem_.is_constant[at(port.value)] && port.layout != layout) ++rank.first;
        }
      }
      if (best != kNoIndex && rank >= least) continue;
      best = index;
      least = rank;
    }
    return best;
  }

  int layout_made(int value) const {
    if (producer_[at(value)] == kNoIndex) return 0;
    for (const PlacementPort& port :
         problem_.candidates[at(chosen_[at(producer_[at(value)])])].outputs) {
      if (port.value == value) return port.layout;
    }
    return 0;
  }

  // Seconds of all conversions of `value`: one for each layout that is needed, directly from the
  // layout in which it is produced.
  double conversions_of(int value) const {
    if (problem_.is_constant[at(value)]) return 0;
    const int made = layout_made(value);
    double total = 0;
    std::vector<int> present = {made};
    const auto need = [&](int layout) {
      if (std::find(present.begin(), present.end(), layout) != present.end()) return;
      present.push_back(layout);
      total += conversion_price(problem_, value, made, layout);
    };
    for (const int reader : readers_[at(value)]) {
      for (const PlacementPort& port : problem_.candidates[at(chosen_[at(reader)])].inputs) {
        if (port.value == value) need(port.layout);
      }
    }
    if (is_result_[at(value)]) need(0);
    return total;
  }

  double price_around(size_t step) const {
    const PlacementCandidate& candidate = problem_.candidates[at(chosen_[step])];
    double total = candidate.seconds;
    for (const PlacementPort& port : candidate.inputs) total += conversions_of(port.value);
    for (const PlacementPort& port : candidate.outputs) total += conversions_of(port.value);
    return total;
  }

  bool improve(size_t step) {
    const int before = chosen_[step];
    int best = before;
    double least = price_around(step);
    for (const int candidate : steps_[step]->candidates) {
      chosen_[step] = candidate;
      const double price = price_around(step);
      // The gain must exceed rounding errors, or two equal candidates would alternate forever.
      if (price >= least * (1 - 1e-9)) continue;
      best = candidate;
      least = price;
    }
    chosen_[step] = best;
    return best != before;
  }

  const PlacementProblem& problem_;
  std::vector<const Group*> steps_;        // in order
  std::vector<int> chosen_;                // by step: a candidate
  std::vector<int> producer_;              // by value: a step, or kNoIndex
  std::vector<std::vector<int>> readers_;  // by value: steps
  std::vector<bool> is_result_;            // by value
};

Cover cover_of(const PlacementProblem& problem, const Placement& placement) {
  Cover cover(problem);
  for (const int index : placement.chosen) cover.try_accept(problem.candidates[at(index)].nodes);
  return cover;
}

}  // namespace

Placement choose_by_price(const PlacementProblem& problem, const Placement& contender,
                          const std::vector<std::string>& node_names) {
  const std::vector<Group> groups = collect_groups(problem);
  Placement best = contender;
  if (!explain_violation(problem, best).empty()) best = choose_in_order(problem, node_names);
  double least = predicted_seconds(problem, best);
  for (const Cover& cover : {cover_greedily(problem, groups), cover_of(problem, best)}) {
    if (cover.first_uncovered() != kNoIndex) continue;
    Descent descent(problem, groups, cover);
    for (int layout = 0; layout < problem.layout_count; ++layout) {
      Placement placement = descent.run(layout);
      const double seconds = predicted_seconds(problem, placement);
      if (seconds >= least) continue;
      least = seconds;
      best = std::move(placement);
    }
  }
  return checked(problem, std::move(best));
}

}  // namespace tessera
