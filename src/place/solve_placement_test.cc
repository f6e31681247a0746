// Solves problems whose cheapest placement is known, and tests the validator with broken ones.
// tests/place/random_problem_test.cc compares placements with an exhaustive search.
#include "place/solve_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/containers/at.h"
#include "place/explain_violation.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// Two groups, {0, 3} and {1, 2}. Each is convex, but they depend on each other.
PlacementProblem crossing_groups() {
  PlacementProblem problem;
  problem.value_count = 6;
  problem.layout_count = 1;
  problem.nodes = {{{0}, {2}}, {{1}, {3}}, {{2}, {4}}, {{3}, {5}}};
  problem.is_constant.assign(6, false);
  problem.results = {4, 5};
  problem.conversion_prices.assign(6, {0});
  for (int node = 0; node < 4; ++node) {
    const PlacementNode& one = problem.nodes[at(node)];
    problem.candidates.push_back({.seconds = 10,
                                  .nodes = {node},
                                  .inputs = {{one.inputs[0], 0}},
                                  .outputs = {{one.outputs[0], 0}}});
  }
  problem.candidates.push_back(
      {.seconds = 5, .nodes = {0, 3}, .inputs = {{0, 0}, {3, 0}}, .outputs = {{2, 0}, {5, 0}}});
  problem.candidates.push_back(
      {.seconds = 6, .nodes = {1, 2}, .inputs = {{1, 0}, {2, 0}}, .outputs = {{3, 0}, {4, 0}}});
  return problem;
}

TEST(SolvePlacement, GroupsThatWaitForEachOther) {
  const PlacementProblem problem = crossing_groups();
  const PlacementSolution solution = solve_placement(problem);
  EXPECT_EQ(solution.seconds, 25);
  EXPECT_TRUE(solution.is_proven());
  EXPECT_EQ(solution.placement.chosen, (std::vector<int>{1, 4, 2}));
}

TEST(SolvePlacement, OneCopyServesAll) {
  PlacementProblem problem;
  problem.value_count = 4;
  problem.layout_count = 2;
  problem.nodes = {{{0}, {1}}, {{0}, {2}}, {{0}, {3}}};
  problem.is_constant.assign(4, false);
  problem.results = {1, 2, 3};
  problem.conversion_prices.assign(4, {0, 4, 1, 0});
  for (int node = 0; node < 3; ++node) {
    problem.candidates.push_back(
        {.seconds = 5, .nodes = {node}, .inputs = {{0, 0}}, .outputs = {{node + 1, 0}}});
    problem.candidates.push_back(
        {.seconds = 2, .nodes = {node}, .inputs = {{0, 1}}, .outputs = {{node + 1, 0}}});
  }
  const PlacementSolution solution = solve_placement(problem);
  EXPECT_EQ(solution.seconds, 10);
  ASSERT_EQ(solution.conversions.size(), 1);
  EXPECT_EQ(solution.conversions[0].to, 1);
}

TEST(SolvePlacement, NoPlacementAtAll) {
  PlacementProblem problem = crossing_groups();
  problem.is_forbidden.assign(6, false);
  problem.is_forbidden[2] = problem.is_forbidden[5] = true;
  EXPECT_FALSE(solve_placement(problem).is_found());
}

TEST(SolvePlacement, LongChainsAndManyBranches) {
  // Like a wide network: 64 branches of 100 nodes, joined by one node.
  PlacementProblem problem;
  problem.layout_count = 3;
  problem.value_count = 1;
  PlacementNode join;
  const auto add_node = [&](const std::vector<int>& inputs) {
    const int value = problem.value_count++;
    const auto node = static_cast<int>(problem.nodes.size());
    problem.nodes.push_back({inputs, {value}});
    for (int layout = 0; layout < 3; ++layout) {
      PlacementCandidate made = {.seconds = 1.0 + (node * 7 + layout * 5) % 11, .nodes = {node}};
      for (const int input : inputs) made.inputs.push_back({input, layout});
      made.outputs = {{value, layout}};
      problem.candidates.push_back(std::move(made));
    }
    return value;
  };
  std::vector<int> ends;
  for (int branch = 0; branch < 64; ++branch) {
    int value = 0;
    for (int depth = 0; depth < 100; ++depth) value = add_node({value});
    ends.push_back(value);
  }
  problem.results = {add_node(ends)};
  problem.is_constant.assign(at(problem.value_count), false);
  problem.conversion_prices.assign(at(problem.value_count), {0, 2, 3, 2, 0, 3, 2, 3, 0});
  const PlacementSolution solution = solve_placement(problem);
  EXPECT_TRUE(solution.is_proven());
  EXPECT_EQ(explain_violation(problem, solution), "");
}

TEST(ExplainSolutionViolation, RejectsWhatIsBroken) {
  const PlacementProblem problem = crossing_groups();
  const PlacementSolution sound = solve_placement(problem);
  using Break = std::function<void(PlacementSolution&)>;
  const std::vector<std::pair<std::string, Break>> breaks = {
      {"in no candidate", [](auto& made) { made.placement.chosen.pop_back(); }},
      {"is not there", [](auto& made) { made.placement.chosen.push_back(9); }},
      {"in two candidates", [](auto& made) { made.placement.chosen.push_back(1); }},
      {"in two candidates", [](auto& made) { made.placement.chosen = {1, 4, 2, 0}; }},
      {"before it is made", [](auto& made) { made.placement.chosen = {4, 1, 2}; }},
      {"before it is made", [](auto& made) { made.placement.chosen = {4, 5}; }},
      {"which is at hand", [](auto& made) { made.conversions.push_back({0, 0, 0}); }},
      {"not at hand", [](auto& made) { made.conversions.push_back({2, 1, 0}); }},
      {"take 25", [](auto& made) { made.seconds = 24; }},
      {"lower bound", [](auto& made) { made.lower_bound = 26; }},
  };
  for (const auto& [expected, breaks_it] : breaks) {
    PlacementSolution broken = sound;
    breaks_it(broken);
    EXPECT_THAT(explain_violation(problem, broken), HasSubstr(expected));
  }
  PlacementProblem apart = problem;
  apart.layout_count = 2;
  apart.conversion_prices.assign(6, {0, kForbidden, kForbidden, 0});
  PlacementSolution converted = sound;
  converted.conversions.push_back({0, 0, 1});
  EXPECT_EQ(explain_violation(apart, converted), "there is no such conversion");
  PlacementProblem tight = problem;
  tight.candidates[4].workspace_bytes = 5;
  tight.workspace_bytes_limit = 4;
  EXPECT_THAT(explain_violation(tight, sound),
              HasSubstr("candidate 4 needs more workspace than is allowed"));
  tight = problem;
  tight.is_forbidden.assign(6, false);
  tight.is_forbidden[4] = true;
  EXPECT_THAT(explain_violation(tight, sound), HasSubstr("candidate 4 is forbidden"));
}

}  // namespace
}  // namespace tessera
