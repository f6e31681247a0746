#include "place/margins.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/containers/at.h"

namespace tessera {
namespace {

// Interchangeable candidates (equal nodes and layouts), the cheapest first.
using Alternatives = std::vector<int>;

std::vector<std::pair<int, int>> layouts_of(const std::vector<PlacementPort>& ports) {
  std::vector<std::pair<int, int>> layouts;
  for (const PlacementPort& port : ports) layouts.emplace_back(port.value, port.layout);
  std::sort(layouts.begin(), layouts.end());
  return layouts;
}

// Sorted by nodes.
std::vector<Alternatives> list_alternatives(const PlacementProblem& problem,
                                            const std::vector<bool>& is_usable) {
  using Ports = std::vector<std::pair<int, int>>;
  std::map<std::tuple<std::vector<int>, Ports, Ports>, Alternatives> found;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (!is_usable[index]) continue;
    found[{candidate.nodes, layouts_of(candidate.inputs), layouts_of(candidate.outputs)}].push_back(
        static_cast<int>(index));
  }
  std::vector<Alternatives> all;
  for (auto& [key, alternatives] : found) {
    std::stable_sort(alternatives.begin(), alternatives.end(), [&](int left, int right) {
      return problem.candidates[at(left)].seconds < problem.candidates[at(right)].seconds;
    });
    all.push_back(std::move(alternatives));
  }
  return all;
}

class MarginFinder {
 public:
  MarginFinder(const PlacementProblem& problem, const PlacementSolution& optimum,
               const PlacementEffort& effort, const std::function<bool()>& should_continue)
      : problem_(problem),
        optimum_(optimum),
        effort_(effort),
        should_continue_(should_continue),
        is_usable_(problem.candidates.size(), true),
        is_best_(problem.candidates.size(), false),
        margins_(problem.candidates.size()) {
    for (size_t index = 0; index < is_usable_.size(); ++index) {
      const bool is_forbidden = !problem.is_forbidden.empty() && problem.is_forbidden[index];
      const bool fits = problem.candidates[index].workspace_bytes <= problem.workspace_bytes_limit;
      is_usable_[index] = !is_forbidden && fits;
      margins_[index].ahead_seconds = 0;
      if (!is_usable_[index]) margins_[index].behind_seconds = kForbidden;
    }
    for (const int index : optimum.placement.chosen) {
      is_best_[at(index)] = true;
      margins_[at(index)] = {.behind_seconds = 0, .ahead_seconds = std::nullopt};
    }
  }

  std::vector<CandidateMargin> find() {
    const std::vector<Alternatives> all = list_alternatives(problem_, is_usable_);
    for (const Alternatives& alternatives : all) {
      const auto best = std::find_if(alternatives.begin(), alternatives.end(),
                                     [&](int index) { return is_best_[at(index)]; });
      if (best == alternatives.end()) continue;
      // To exchange the best candidate for an alternative changes the cost of the optimum by the
      // difference of their seconds.
      spread(alternatives, *best, 0);
      if (should_continue()) find_lead(alternatives, *best);
    }
    for (const Alternatives& alternatives : all) {
      std::optional<double> behind = margins_[at(alternatives[0])].behind_seconds;
      // solve_placement() ignores the other alternatives, which the cheapest one dominates.
      if (!behind && should_continue()) {
        behind = solve(problem_, {{alternatives[0], true}}).seconds;
      }
      if (behind) spread(alternatives, alternatives[0], *behind);
    }
    return std::move(margins_);
  }

 private:
  bool should_continue() const { return !should_continue_ || should_continue_(); }

  struct Next {
    std::optional<double> seconds;  // increase over the optimum
    Placement placement;
  };

  Next solve(const PlacementProblem& problem, const std::vector<Decision>& decisions) const {
    PlacementSolution solution = solve_placement(problem, effort_, decisions);
    if (!solution.is_proven()) return {};
    if (!solution.is_found()) return {kForbidden, {}};
    // Sums in another order differ by rounding, so the difference could be negative.
    return {std::max(0.0, solution.seconds - optimum_.seconds), std::move(solution.placement)};
  }

  PlacementProblem problem_without(const std::vector<int>& candidates) const {
    PlacementProblem problem = problem_;
    problem.is_forbidden.resize(problem.candidates.size(), false);
    for (const int index : candidates) problem.is_forbidden[at(index)] = true;
    return problem;
  }

  // Derives behind_seconds of the alternatives from `behind`, which is the value of `known`.
  void spread(const Alternatives& alternatives, int known, double behind) {
    for (const int index : alternatives) {
      if (margins_[at(index)].behind_seconds) continue;
      margins_[at(index)].behind_seconds =
          std::max(0.0, behind + problem_.candidates[at(index)].seconds -
                            problem_.candidates[at(known)].seconds);
    }
  }

  void find_lead(const Alternatives& alternatives, int best) {
    double least = kForbidden;
    for (const int index : alternatives) {
      if (index != best) least = std::min(least, *margins_[at(index)].behind_seconds);
    }
    const auto [ahead, next] = solve(problem_without(alternatives), {});
    if (!ahead) return;
    margins_[at(best)].ahead_seconds = std::min(least, *ahead);
    for (const int index : next.chosen) {
      CandidateMargin& margin = margins_[at(index)];
      if (!margin.behind_seconds && excludes(index, best)) margin.behind_seconds = ahead;
    }
  }

  // Whether no placement can contain both candidates.
  bool excludes(int left, int right) const {
    const std::vector<int>& nodes = problem_.candidates[at(left)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
      const std::vector<int>& others = problem_.candidates[at(right)].nodes;
      return std::find(others.begin(), others.end(), node) != others.end();
    });
  }

  const PlacementProblem& problem_;
  const PlacementSolution& optimum_;
  PlacementEffort effort_;
  const std::function<bool()>& should_continue_;
  std::vector<bool> is_usable_;  // by candidate
  std::vector<bool> is_best_;    // by candidate: in the optimum
  std::vector<CandidateMargin> margins_;
};

}  // namespace

std::vector<CandidateMargin> find_margins(const PlacementProblem& problem,
                                          const PlacementSolution& optimum,
                                          const PlacementEffort& effort,
                                          const std::function<bool()>& should_continue) {
  return MarginFinder(problem, optimum, effort, should_continue).find();
}

}  // namespace tessera
