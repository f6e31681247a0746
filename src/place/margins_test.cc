// Compares margins with an exhaustive search over all sets of candidates.
#include "place/margins.h"
#include "base/at.h"

#include <gtest/gtest.h>

#include "place/brute_force_test.h"
#include "place/random_problem.h"

namespace tessera {
namespace {

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

TEST(Margins, OfAlternativesThePricesAlone) {
  // One node with three candidates in one layout, and one in another layout, which needs two
  // conversions.
  PlacementProblem problem;
  problem.nodes = {{{0}, {1}}};
  problem.value_count = 2;
  problem.layout_count = 2;
  problem.is_constant = {false, false};
  problem.results = {1};
  problem.conversion_prices = {{0, 4, 4, 0}, {0, 4, 4, 0}};
  for (const double seconds : {7.0, 5.0, 9.0}) {
    problem.candidates.push_back(
        {.seconds = seconds, .nodes = {0}, .inputs = {{0, 0}}, .outputs = {{1, 0}}});
  }
  problem.candidates.push_back(
      {.seconds = 1, .nodes = {0}, .inputs = {{0, 1}}, .outputs = {{1, 1}}});
  const PlacementSolution optimum = solve_placement(problem);
  ASSERT_EQ(optimum.placement.chosen, std::vector<int>{1});
  const std::vector<CandidateMargin> margins = find_margins(problem, optimum);
  EXPECT_EQ(margins[0].behind_seconds, 2);
  EXPECT_EQ(margins[1].behind_seconds, 0);
  EXPECT_EQ(margins[1].ahead_seconds, 2);
  EXPECT_EQ(margins[2].behind_seconds, 4);
  EXPECT_EQ(margins[3].behind_seconds, 4) << "1 and twice 4 against 5";
  EXPECT_EQ(margins[3].ahead_seconds, 0);
}

}  // namespace
}  // namespace tessera
