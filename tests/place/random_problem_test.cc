// Compares solve_placement() and find_margins() with an exhaustive search on random problems.
#include "random_problem.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/at.h"
#include "brute_force.h"
#include "place/explain_violation.h"
#include "place/margins.h"
#include "place/solve_placement.h"

namespace tessera {
namespace {

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
