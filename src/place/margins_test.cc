// tests/place/random_problem_test.cc compares margins with an exhaustive search.
#include "place/margins.h"

#include <gtest/gtest.h>

#include <vector>

#include "place/chain_problem_test.h"

namespace tessera {
namespace {

TEST(Margins, OfAlternativesThePricesAlone) {
  // One node with three candidates in one layout, and one in another layout, which needs two
  // conversions.
  PlacementProblem problem = chain_problem(1);
  problem.conversion_seconds = {4, 4};
  problem.candidates = {covering({0}, 0, 0, 7), covering({0}, 0, 0, 5), covering({0}, 0, 0, 9),
                        covering({0}, 1, 0, 1)};
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
