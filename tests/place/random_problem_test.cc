// Compares solve_placement() and find_margins() with an exhaustive search on random problems.
#include "random_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/containers/at.h"
#include "place/explain_violation.h"
#include "place/margins.h"
#include "place/solve_placement.h"
#include "solver/cost_network.h"

namespace tessera {
namespace {

// Finds the minimum cost of a small problem by exhaustive search: tries every set of candidates,
// and every order of conversions of each value.
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

TEST(SolvePlacement, AsGoodAsTryingEverything) {
  int solved = 0;
  int branched = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const PlacementProblem problem = make_random_problem(seed, {.max_nodes = 6, .max_groups = 4});
    const PlacementSolution solution = solve_placement(problem);
    ASSERT_EQ(solution.seconds, BruteForce(problem).least()) << "seed " << seed;
    ASSERT_TRUE(solution.is_proven()) << "seed " << seed;
    if (!solution.is_found()) continue;
    ASSERT_EQ(explain_violation(problem, solution), "") << "seed " << seed;
    ++solved;
    branched += solution.networks > 1 ? 1 : 0;
  }
  EXPECT_GT(solved, 240);
  EXPECT_GT(branched, 5);
}

TEST(SolvePlacement, StopsWithABound) {
  int unproven = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const PlacementProblem problem = make_random_problem(seed, {.max_nodes = 6, .max_groups = 4});
    const PlacementSolution solution = solve_placement(problem, {.networks = 1});
    const double least = BruteForce(problem).least();
    EXPECT_LE(solution.lower_bound, least);
    EXPECT_GE(solution.seconds, least);
    if (solution.is_found()) {
      EXPECT_EQ(explain_violation(problem, solution), "");
    }
    unproven += solution.is_proven() ? 0 : 1;
  }
  EXPECT_GT(unproven, 0);
}

TEST(Margins, AsTryingEverythingFindsThem) {
  int infinite = 0;
  int behind = 0;
  int ahead = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const PlacementProblem problem = make_random_problem(seed, {.max_nodes = 5, .max_groups = 4});
    const PlacementSolution optimum = solve_placement(problem);
    if (!optimum.is_found()) continue;
    BruteForce tried(problem);
    ASSERT_EQ(tried.least(), optimum.seconds);
    const std::vector<CandidateMargin> margins = find_margins(problem, optimum);
    ASSERT_EQ(margins.size(), problem.candidates.size());
    for (size_t index = 0; index < margins.size(); ++index) {
      const std::string where =
          "seed " + std::to_string(seed) + ", candidate " + std::to_string(index);
      ASSERT_TRUE(margins[index].behind_seconds.has_value()) << where;
      ASSERT_TRUE(margins[index].ahead_seconds.has_value()) << where;
      ASSERT_EQ(*margins[index].behind_seconds, tried.min_with()[index] - optimum.seconds) << where;
      ASSERT_EQ(*margins[index].ahead_seconds, tried.min_without()[index] - optimum.seconds)
          << where;
      infinite += *margins[index].behind_seconds == kForbidden ? 1 : 0;
      behind += *margins[index].behind_seconds > 0 ? 1 : 0;
      ahead += *margins[index].ahead_seconds > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(infinite, 10);
  EXPECT_GT(behind, 500);
  EXPECT_GT(ahead, 200);
}

TEST(Margins, WhatIsMissingIsNotSaid) {
  const PlacementProblem problem = make_random_problem(11, {.max_nodes = 6, .max_groups = 4});
  const PlacementSolution optimum = solve_placement(problem);
  ASSERT_TRUE(optimum.is_found());
  const std::vector<CandidateMargin> whole = find_margins(problem, optimum);
  int solutions = 2;
  const std::vector<CandidateMargin> part =
      find_margins(problem, optimum, {}, [&] { return solutions-- > 0; });
  int missing = 0;
  for (size_t index = 0; index < whole.size(); ++index) {
    missing += part[index].behind_seconds ? 0 : 1;
    if (part[index].behind_seconds) {
      EXPECT_EQ(part[index].behind_seconds, whole[index].behind_seconds);
    }
  }
  EXPECT_GT(missing, 0);
  for (const int index : optimum.placement.chosen) EXPECT_EQ(part[at(index)].behind_seconds, 0);
}

}  // namespace
}  // namespace tessera
