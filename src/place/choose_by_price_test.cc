#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/containers/at.h"
#include "base/errors/error_test.h"
#include "place/chain_problem_test.h"
#include "place/cover.h"
#include "place/explain_violation.h"
#include "place/placement.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using testing::ElementsAre;

Placement in_order(const PlacementProblem& problem) {
  return choose_in_order(problem, node_names(problem));
}

Placement by_price(const PlacementProblem& problem) {
  const Placement placement = choose_by_price(problem, in_order(problem), node_names(problem));
  EXPECT_EQ(explain_violation(problem, placement), "");
  return placement;
}

TEST(ChooseByPrice, TakesTheCheapestWhateverThePreference) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 0, 2), covering({0}, 0, 5, 1)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, FusesWhereThatIsCheaper) {
  PlacementProblem problem = chain_problem(2);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1),
                        covering({0, 1}, 0, 0, 1.9)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(2));
  problem.candidates[2].seconds = 2.1;
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0, 1));
}

TEST(ChooseByPrice, StaysInALayoutAlongAChain) {
  // The gain at one node is less than the price of two conversions; the gain at all five is more.
  PlacementProblem problem = chain_problem(5);
  for (int node = 0; node < 5; ++node) {
    problem.candidates.push_back(covering({node}, 0, 0, 2));
    problem.candidates.push_back(covering({node}, 1, 0, 1));
  }
  const Placement placement = by_price(problem);
  EXPECT_THAT(placement.chosen, ElementsAre(1, 3, 5, 7, 9));
  EXPECT_DOUBLE_EQ(predicted_seconds(problem, placement), 7);
}

TEST(ChooseByPrice, PaysForTheResultsConversion) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 0, 2.5), covering({0}, 1, 0, 1)};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0));
  problem.results = {};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, UsesPricesOfSingleConversions) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 0, 2.5), covering({0}, 1, 0, 1)};
  // The conversion into layout 1 is free; the conversion back costs as before.
  problem.conversion_prices = {{0, 0, 0, 0}, {}};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(1));
}

TEST(ChooseByPrice, TakesNothingForbidden) {
  PlacementProblem problem = chain_problem(2);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1),
                        covering({0, 1}, 0, 0, 0.5)};
  problem.is_forbidden = {false, false, true};
  EXPECT_THAT(by_price(problem).chosen, ElementsAre(0, 1));
}

TEST(ChooseByPrice, NamesANodeThatNobodyCanCompute) {
  PlacementProblem problem = chain_problem(2);
  problem.candidates = {covering({0}, 0, 0, 1)};
  EXPECT_THAT(error_of([&] { choose_by_price(problem, {}, {"first", "second"}); }),
              testing::HasSubstr("second"));
}

// The price of the cheapest placement, by exhaustive search: tries every candidate for the first
// uncovered node.
double min_of_all(const PlacementProblem& problem, const Cover& cover, std::vector<int>& taken) {
  const int free = cover.first_uncovered();
  if (free == kNoIndex) {
    Placement placement;
    for (const int group : cover.order()) {
      placement.chosen.push_back(taken[at(group)]);
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
    const PlacementProblem problem = random_branches(random, 7, 4);
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
