#include "place/cheapest_parts.h"

#include <gtest/gtest.h>

#include "place/chain_problem_test.h"

namespace tessera {
namespace {

// Candidates for four nodes in a row.
PlacementProblem offered_chain() {
  PlacementProblem problem = chain_problem(4);
  const auto add = [&](double seconds, std::vector<int> nodes) {
    problem.candidates.push_back(covering(std::move(nodes), 1, 0, seconds));
    problem.candidates.back().outputs[0].layout = 0;  // layouts do not count
  };
  add(10, {0, 1, 2});
  add(5, {0});
  add(4, {0});
  add(7, {1});
  add(6, {2});
  add(3, {1, 2});
  add(1, {2, 3});
  add(2, {0, 1, 2});
  return problem;
}

std::optional<double> least(const PlacementProblem& problem, const std::vector<int>& unknown,
                            const std::vector<int>& group = {0, 1, 2}) {
  std::vector<bool> is_known(problem.candidates.size(), true);
  for (const int index : unknown) is_known[static_cast<size_t>(index)] = false;
  return cheapest_parts_seconds(problem, group, is_known);
}

TEST(CheapestParts, SmallerGroupsCountButNeitherTheWholeNorOthers) {
  EXPECT_EQ(least(offered_chain(), {}), 7) << "4 of node 0, 3 of nodes 1 and 2";
  EXPECT_EQ(least(offered_chain(), {5}), 17)
      << "one by one; the group {2, 3} computes another node, too";
}

TEST(CheapestParts, OnlyKnownCandidatesCount) {
  EXPECT_EQ(least(offered_chain(), {2}), 8);
  EXPECT_EQ(least(offered_chain(), {4, 5}), std::nullopt) << "nothing is known of node 2";
  EXPECT_EQ(least(offered_chain(), {}, {1, 2}), 13) << "the pair itself is no part of it";
}

// A group that does not produce a value that another part reads cannot be beside that part.
TEST(CheapestParts, PartsProduceWhatOthersRead) {
  PlacementProblem problem{.value_count = 4, .layout_count = 1};
  problem.nodes = {{{0}, {1}}, {{1}, {2}}, {{1, 2}, {3}}};
  problem.candidates = {
      {.seconds = 1, .nodes = {0, 1}, .inputs = {{.value = 0}}, .outputs = {{.value = 2}}},
      {.seconds = 1,
       .nodes = {2},
       .inputs = {{.value = 1}, {.value = 2}},
       .outputs = {{.value = 3}}},
      {.seconds = 5, .nodes = {0}, .inputs = {{.value = 0}}, .outputs = {{.value = 1}}},
      {.seconds = 5, .nodes = {1}, .inputs = {{.value = 1}}, .outputs = {{.value = 2}}}};
  EXPECT_EQ(cheapest_parts_seconds(problem, {0, 1, 2}, {true, true, true, true}), 11);
  EXPECT_EQ(cheapest_parts_seconds(problem, {0, 1, 2}, {true, true, false, false}), std::nullopt);
}

}  // namespace
}  // namespace tessera
