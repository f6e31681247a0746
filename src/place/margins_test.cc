// tests/place/random_problem_test.cc compares margins with an exhaustive search.
#include "place/margins.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

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
