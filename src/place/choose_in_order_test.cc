#include <gmock/gmock.h>

#include <random>

#include "base/errors/error_test.h"
#include "place/chain_problem_test.h"
#include "place/explain_violation.h"
#include "place/placement.h"

namespace tessera {
namespace {

using testing::ElementsAre;

std::vector<int> choose(const PlacementProblem& problem) {
  const Placement placement = choose_in_order(problem, node_names(problem));
  EXPECT_EQ(explain_violation(problem, placement), "");
  return placement.chosen;
}

TEST(ChooseInOrder, TakesTheBackendThatStandsFirstWhateverItCosts) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 1, 1), covering({0}, 0, 0, 9)};
  EXPECT_THAT(choose(problem), ElementsAre(1));
}

TEST(ChooseInOrder, TakesTheLargerGroupOfOneBackend) {
  PlacementProblem problem = chain_problem(3);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1), covering({2}, 0, 0, 1),
                        covering({1, 2}, 0, 0, 9)};
  EXPECT_THAT(choose(problem), ElementsAre(0, 3));
}

PlacementCandidate one_pass(std::vector<int> nodes, int preference) {
  PlacementCandidate candidate = covering(std::move(nodes), 0, preference, 1);
  candidate.is_one_pass = true;
  return candidate;
}

TEST(ChooseInOrder, TakesTheLargestGroupOfOnePassWhateverItsBackend) {
  PlacementProblem problem = chain_problem(3);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1), covering({2}, 0, 0, 1),
                        one_pass({0, 1}, 1), one_pass({0, 1, 2}, 2)};
  EXPECT_THAT(choose(problem), ElementsAre(4));
  problem.is_forbidden = {false, false, false, false, true};
  EXPECT_THAT(choose(problem), ElementsAre(3, 2));
  // Among equal groups, the group of the preferred backend is chosen.
  problem.candidates.push_back(one_pass({0, 1}, 0));
  problem.is_forbidden.push_back(false);
  EXPECT_THAT(choose(problem), ElementsAre(5, 2));
}

TEST(ChooseInOrder, FusesWithAProductBeforeItFusesInOnePass) {
  PlacementProblem problem = chain_problem(4);
  // Node 0 is a product, with which the first backend can fuse node 1.
  problem.candidates = {covering({0}, 0, 0, 1), covering({0, 1}, 0, 0, 1), covering({1}, 0, 0, 1),
                        covering({2}, 0, 0, 1), covering({3}, 0, 0, 1),    one_pass({1, 2, 3}, 1),
                        one_pass({2, 3}, 1)};
  EXPECT_THAT(choose(problem), ElementsAre(1, 6));
}

TEST(ChooseInOrder, ASingleNodeInOnePassHasNoPrivilege) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 0, 1), one_pass({0}, 1)};
  EXPECT_THAT(choose(problem), ElementsAre(0));
}

TEST(ChooseInOrder, WeighsConversionsAgainstTimes) {
  PlacementProblem problem = chain_problem(2);
  // The second node's input exists in layout 1: 1.5 s there beats 1 s and a conversion.
  problem.candidates = {covering({0}, 1, 0, 1), covering({1}, 0, 0, 1), covering({1}, 1, 0, 1.5)};
  EXPECT_THAT(choose(problem), ElementsAre(0, 2));
  problem.candidates[2].seconds = 2.5;
  EXPECT_THAT(choose(problem), ElementsAre(0, 1));
  // Conversions of constants cost nothing.
  problem.is_constant[1] = true;
  problem.candidates[2].seconds = 1.5;
  EXPECT_THAT(choose(problem), ElementsAre(0, 1));
}

TEST(ChooseInOrder, PassesOverWhatIsForbidden) {
  PlacementProblem problem = chain_problem(1);
  problem.candidates = {covering({0}, 0, 0, 1), covering({0}, 0, 1, 1)};
  problem.is_forbidden = {true, false};
  EXPECT_THAT(choose(problem), ElementsAre(1));
}

// 0 -> {1, 2}, and 1, 2 -> 3: groups {0, 1} and {2, 3} are legal together; {0, 3} is not convex.
PlacementProblem diamond() {
  PlacementProblem problem = chain_problem(4);
  problem.nodes = {{{0}, {1}}, {{1}, {2}}, {{1}, {3}}, {{2, 3}, {4}}};
  for (int node = 0; node < 4; ++node) {
    PlacementCandidate single{.preference = 1, .nodes = {node}};
    for (const int value : problem.nodes[static_cast<size_t>(node)].inputs) {
      single.inputs.push_back({value, 0});
    }
    single.outputs = {{node + 1, 0}};
    problem.candidates.push_back(single);
  }
  return problem;
}

TEST(ChooseInOrder, NeverClosesACycle) {
  PlacementProblem problem = diamond();
  PlacementCandidate around{.preference = 0, .nodes = {0, 3}};
  around.inputs = {{0, 0}, {2, 0}, {3, 0}};
  around.outputs = {{1, 0}, {4, 0}};
  problem.candidates.push_back(around);
  EXPECT_THAT(choose(problem), ElementsAre(0, 1, 2, 3));
}

TEST(ChooseInOrder, NeverTakesTwoGroupsThatWaitForEachOther) {
  // a0 -> b0, b1 -> a1: {a0, a1} and {b0, b1} are both convex, but form a cycle together.
  PlacementProblem problem = chain_problem(4);
  problem.nodes = {{{}, {0}}, {{0}, {1}}, {{}, {2}}, {{2}, {3}}};
  problem.value_count = 5;
  const auto group = [](std::vector<int> nodes, std::vector<PlacementPort> inputs,
                        std::vector<PlacementPort> outputs, int preference) {
    return PlacementCandidate{.preference = preference,
                              .nodes = std::move(nodes),
                              .inputs = std::move(inputs),
                              .outputs = std::move(outputs)};
  };
  problem.candidates = {group({0, 3}, {{2, 0}}, {{0, 0}, {3, 0}}, 0),
                        group({1, 2}, {{0, 0}}, {{1, 0}, {2, 0}}, 0),
                        group({1}, {{0, 0}}, {{1, 0}}, 1), group({2}, {}, {{2, 0}}, 1)};
  EXPECT_THAT(choose(problem), ElementsAre(3, 0, 2));
}

TEST(ChooseInOrder, NamesANodeThatNobodyCanCompute) {
  PlacementProblem problem = chain_problem(2);
  problem.candidates = {covering({0}, 0, 0, 1)};
  EXPECT_THAT(error_of([&] { choose_in_order(problem, {"node 'a' (Relu)", "node 'b' (Relu)"}); }),
              testing::HasSubstr("node 'b' (Relu)"));
}

TEST(ExplainViolation, SaysWhatIsWrong) {
  PlacementProblem problem = chain_problem(2);
  problem.candidates = {covering({0}, 0, 0, 1), covering({1}, 0, 0, 1), covering({0, 1}, 0, 0, 1)};
  const struct {
    std::vector<int> chosen;
    std::string wrong;
  } cases[] = {
      {{0, 1}, ""},
      {{2}, ""},
      {{0}, "node 1 is in no candidate"},
      {{1, 0}, "candidate 1 reads value 1 before it is made"},
      {{0, 2}, "node 0 is in two candidates"},
      {{7}, "candidate 7 is not there"},
  };
  for (const auto& [chosen, wrong] : cases) {
    EXPECT_EQ(explain_violation(problem, Placement{chosen}), wrong);
  }
  problem.is_forbidden = {true, false, false};
  EXPECT_EQ(explain_violation(problem, Placement{{0, 1}}), "candidate 0 is forbidden");
}

// choose() expects that every choice is legal.
TEST(ChooseInOrder, IsSoundOnRandomProblems) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) choose(random_branches(random, 12, 8));
}

}  // namespace
}  // namespace tessera
