#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/error_test.h"
#include "place/cover.h"
#include "place/explain_violation.h"
#include "place/placement.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using testing::ElementsAre;

// A chain of nodes: node i reads value i and produces value i + 1; the last value is a result.
// Converting between the two layouts takes a second.
PlacementProblem chain(int nodes) {
  PlacementProblem problem;
  problem.value_count = nodes + 1;
  problem.layout_count = 2;
  for (int node = 0; node < nodes; ++node) problem.nodes.push_back({{node}, {node + 1}});
  problem.conversion_seconds.assign(static_cast<size_t>(nodes) + 1, 1);
  problem.conversion_hops = {{0, 1}, {1, 0}};
  problem.is_constant.assign(static_cast<size_t>(nodes) + 1, false);
  problem.results = {nodes};
  return problem;
}

PlacementCandidate covering(std::vector<int> nodes, int layout, int preference, double seconds) {
  PlacementCandidate candidate{.preference = preference, .seconds = seconds, .nodes = nodes};
  candidate.inputs = {{nodes.front(), layout}};
  candidate.outputs = {{nodes.back() + 1, layout}};
  return candidate;
}

Placement in_order(const PlacementProblem& problem) {
  return choose_in_order(problem, std::vector<std::string>(problem.nodes.size(), "node"));
}

Placement by_price(const PlacementProblem& problem) {
  const Placement placement = choose_by_price(
      problem, in_order(problem), std::vector<std::string>(problem.nodes.size(), "node"));
  EXPECT_EQ(explain_violation(problem, placement), "");
  return placement;
}

TEST(ChooseByPrice, TakesTheCheapestWhateverThePreference) {
  PlacementProblem problem = chain(1);
  problem.candidates = {covering({0}, 0, 0, 2), covering({0}, 0, 5, 1)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, FusesWhereThatIsCheaper) {
  PlacementProblem problem = chain(2);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1),
                        covering({0, 1}, 0, 0, 1.9)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(2));
  problem.candidates[2].seconds = 2.1;
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0, 1));
}

TEST(ChooseByPrice, StaysInALayoutAlongAChain) {
  // The gain at one node is less than the price of two conversions; the gain at all five is more.
  PlacementProblem problem = chain(5);
  for (int node = 0; node < 5; ++node) {
    problem.candidates.push_back(covering({node}, 0, 0, 2));
    problem.candidates.push_back(covering({node}, 1, 0, 1));
  }
  const Placement placement = by_price(problem);
  EXPECT_THAT(placement.chosen, ElementsAre(1, 3, 5, 7, 9));
  EXPECT_DOUBLE_EQ(predicted_seconds(problem, placement), 7);
}

TEST(ChooseByPrice, PaysForTheResultsConversion) {
  PlacementProblem problem = chain(1);
  problem.candidates = {covering({0}, 0, 0, 2.5), covering({0}, 1, 0, 1)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0));
  problem.results = {};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, UsesPricesOfSingleConversions) {
  PlacementProblem problem = chain(1);
  problem.candidates = {covering({0}, 0, 0, 2.5), covering({0}, 1, 0, 1)};
  // The conversion into layout 1 is free; the conversion back costs as before.
  problem.conversion_prices = {{0, 0, 0, 0}, {}};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, TakesNothingForbidden) {
  PlacementProblem problem = chain(2);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1),
                        covering({0, 1}, 0, 0, 0.5)};
  problem.is_forbidden = {false, false, true};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0, 1));
}

TEST(ChooseByPrice, NamesANodeThatNobodyCanCompute) {
  PlacementProblem problem = chain(2);
  problem.candidates = {covering({0}, 0, 0, 1)};
  EXPECT_THAT(error_of([&] { choose_by_price(problem, {}, {"first", "second"}); }),
              testing::HasSubstr("second"));
}

// Random chains and branches with random groups.
PlacementProblem random_problem(std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  const int nodes = 1 + below(7);
  PlacementProblem problem = chain(nodes);
  for (int node = 1; node < nodes; ++node) {
    problem.nodes[static_cast<size_t>(node)].inputs = {below(node + 1), below(node + 1)};
  }
  const auto offer = [&](std::vector<int> members) {
    PlacementCandidate candidate{.preference = below(3), .seconds = 0.1 * (1 + below(40))};
    for (const int node : members) {
      for (const int value : problem.nodes[static_cast<size_t>(node)].inputs) {
        if (std::find(members.begin(), members.end(), value - 1) == members.end()) {
          candidate.inputs.push_back({value, below(2)});
        }
      }
      candidate.outputs.push_back({node + 1, below(2)});
    }
    candidate.nodes = std::move(members);
    problem.candidates.push_back(std::move(candidate));
  };
  for (int node = 0; node < nodes; ++node) {
    offer({node});
    offer({node});
  }
  for (int group = 0; group < 4; ++group) {
    std::vector<int> members;
    for (int node = 0; node < nodes; ++node) {
      if (below(3) == 0) members.push_back(node);
    }
    if (!members.empty()) offer(std::move(members));
  }
  return problem;
}

// The price of the cheapest placement, by exhaustive search: tries every candidate for the first
// uncovered node.
double min_of_all(const PlacementProblem& problem, const Cover& cover, std::vector<int>& taken) {
  const int free = cover.first_uncovered();
  if (free < 0) {
    Placement placement;
    for (const int group : cover.order()) {
      placement.chosen.push_back(taken[static_cast<size_t>(group)]);
    }
    EXPECT_EQ(explain_violation(problem, placement), "");
    return predicted_seconds(problem, placement);
  }
  double least = std::numeric_limits<double>::infinity();
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const std::vector<int>& nodes = problem.candidates[index].nodes;
    if (std::find(nodes.begin(), nodes.end(), free) == nodes.end()) continue;
    Cover next = cover;
    if (!next.try_accept(nodes)) continue;
    taken.push_back(static_cast<int>(index));
    least = std::min(least, min_of_all(problem, next, taken));
    taken.pop_back();
  }
  return least;
}

TEST(ChooseByPrice, IsSoundAndNeverDearerThanTheChoiceInOrder) {
  std::mt19937 random(1);
  int best = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    const PlacementProblem problem = random_problem(random);
    const double found = predicted_seconds(problem, by_price(problem));
    EXPECT_LE(found, predicted_seconds(problem, in_order(problem)) + 1e-9);
    std::vector<int> taken;
    const double least = min_of_all(problem, Cover(problem), taken);
    EXPECT_GE(found, least - 1e-9);
    if (found <= least + 1e-9) ++best;
  }
  // The choice is greedy, so it may miss the optimum, but not often.
  EXPECT_GE(best, kRounds * 7 / 10);
}

}  // namespace
}  // namespace tessera
