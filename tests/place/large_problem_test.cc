// Problems of the size of the largest networks are solved in seconds, to the optimum or near it.
#include "large_problem.h"

#include <gtest/gtest.h>

#include "base/threads/stopwatch.h"
#include "place/explain_violation.h"
#include "place/solve_placement.h"

namespace tessera {
namespace {

constexpr double kMaxGap = 0.01;

// Sanitizers and debug builds are many times slower; they test for errors, not for speed.
#if defined(NDEBUG) && !defined(TESSERA_SANITIZED)
constexpr int kNodes = 10000;
constexpr double kMaxSeconds = 10;
#else
constexpr int kNodes = 1000;
constexpr double kMaxSeconds = 1e9;
#endif

double gap_of(const PlacementSolution& solution) {
  return solution.seconds / solution.lower_bound - 1;
}

class LargeProblem : public testing::TestWithParam<GraphShape> {};

TEST_P(LargeProblem, TenThousandNodesInTenSeconds) {
  const PlacementProblem problem = make_large_problem(GetParam(), {.nodes = kNodes});
  ASSERT_GE(problem.nodes.size(), size_t{kNodes});
  const Stopwatch stopwatch;
  const PlacementSolution solution = solve_placement(problem);
  EXPECT_LT(stopwatch.read().thread_seconds, kMaxSeconds);
  EXPECT_EQ(explain_violation(problem, solution), "");
  EXPECT_LE(gap_of(solution), kMaxGap);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LargeProblem,
                         testing::ValuesIn(graph_shapes().begin(), graph_shapes().end()),
                         [](const auto& shape) { return shape_name(shape.param); });

struct TimedSolution {
  PlacementSolution solution;
  double seconds = 0;  // CPU time
};

TimedSolution solve_within(const PlacementProblem& problem, double limit_seconds) {
  const Stopwatch stopwatch;
  PlacementEffort effort;
  effort.network.work_cells = 1e13;  // hours
  effort.network.should_continue = [&] { return stopwatch.read().thread_seconds < limit_seconds; };
  TimedSolution timed{.solution = solve_placement(problem, effort)};
  timed.seconds = stopwatch.read().thread_seconds;
  return timed;
}

// Hours would not be enough to solve the widest problems. A first answer takes some time, even with
// a limit of 0.
TEST(LargeProblem, HasAnAnswerWhereTimeIsOver) {
  for (const GraphShape shape : {GraphShape::Dense, GraphShape::WideRandom}) {
    const PlacementProblem problem = make_large_problem(shape, {.nodes = kNodes});
    const auto [solution, seconds] = solve_within(problem, 0);
    EXPECT_EQ(explain_violation(problem, solution), "");
    EXPECT_FALSE(solution.is_proven());
    EXPECT_GT(gap_of(solution), 0);
    EXPECT_LT(gap_of(solution), 0.1);
    EXPECT_LT(seconds, kMaxSeconds / 4);
  }
}

TEST(LargeProblem, KeepsItsTimeLimit) {
  const PlacementProblem problem = make_large_problem(GraphShape::Dense, {.nodes = kNodes});
  constexpr double kLimit = 2;
  // Tolerance for slow machines.
  constexpr double kSlack = kMaxSeconds / 10;
  const auto [solution, seconds] = solve_within(problem, kLimit);
  EXPECT_EQ(explain_violation(problem, solution), "");
  EXPECT_FALSE(solution.is_proven());
  EXPECT_LE(gap_of(solution), kMaxGap);
  EXPECT_GE(seconds, kLimit);
  EXPECT_LT(seconds, 1.2 * kLimit + kSlack);
}

TEST(LargeProblem, EqualArgumentsGiveEqualProblems) {
  const PlacementProblem one = make_large_problem(GraphShape::WideRandom, {.nodes = 100});
  const PlacementProblem other = make_large_problem(GraphShape::WideRandom, {.nodes = 100});
  ASSERT_EQ(one.candidates.size(), other.candidates.size());
  for (size_t index = 0; index < one.candidates.size(); ++index) {
    EXPECT_EQ(one.candidates[index].seconds, other.candidates[index].seconds);
  }
}

}  // namespace
}  // namespace tessera
