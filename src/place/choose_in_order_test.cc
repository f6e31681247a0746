#include <gmock/gmock.h>

#include <random>

#include "base/error_test.h"
#include "place/explain_violation.h"
#include "place/placement.h"

namespace tessera {
namespace {

using testing::ElementsAre;

// A chain of nodes: node i reads value i and produces value i + 1. Two layouts, one hop apart.
PlacementProblem plain_chain(int nodes) {
  PlacementProblem problem;
  problem.value_count = nodes + 1;
  problem.layout_count = 2;
  for (int node = 0; node < nodes; ++node) problem.nodes.push_back({{node}, {node + 1}});
  problem.conversion_seconds.assign(static_cast<size_t>(nodes) + 1, 1);
  problem.conversion_hops = {{0, 1}, {1, 0}};
  problem.is_constant.assign(static_cast<size_t>(nodes) + 1, false);
  return problem;
}

PlacementCandidate plain_covering(std::vector<int> nodes, int layout, int preference,
                                  double seconds) {
  PlacementCandidate candidate{.preference = preference, .seconds = seconds, .nodes = nodes};
  candidate.inputs = {{nodes.front(), layout}};
  candidate.outputs = {{nodes.back() + 1, layout}};
  return candidate;
}

std::vector<int> choose(const PlacementProblem& problem) {
  const std::vector<std::string> names(problem.nodes.size(), "node");
  const Placement placement = choose_in_order(problem, names);
  EXPECT_EQ(explain_violation(problem, placement), "");
  return placement.chosen;
}

TEST(ChooseInOrder, TakesTheBackendThatStandsFirstWhateverItCosts) {
  PlacementProblem problem = plain_chain(1);
  problem.candidates = {plain_covering({0}, 0, 1, 1), plain_covering({0}, 0, 0, 9)};
  EXPECT_THAT(choose(problem), ElementsAre(1));
}

TEST(ChooseInOrder, TakesTheLargerGroupOfOneBackend) {
  PlacementProblem problem = plain_chain(3);
  problem.candidates = {plain_covering({0}, 0, 0, 1), plain_covering({1}, 0, 0, 1),
                        plain_covering({2}, 0, 0, 1), plain_covering({1, 2}, 0, 0, 9)};
  EXPECT_THAT(choose(problem), ElementsAre(0, 3));
}

PlacementCandidate one_pass(std::vector<int> nodes, int preference) {
  PlacementCandidate candidate = plain_covering(std::move(nodes), 0, preference, 1);
  candidate.is_one_pass = true;
  return candidate;
}

TEST(ChooseInOrder, TakesTheLargestGroupOfOnePassWhateverItsBackend) {
  PlacementProblem problem = plain_chain(3);
  problem.candidates = {plain_covering({0}, 0, 0, 1), plain_covering({1}, 0, 0, 1),
                        plain_covering({2}, 0, 0, 1), one_pass({0, 1}, 1), one_pass({0, 1, 2}, 2)};
  EXPECT_THAT(choose(problem), ElementsAre(4));
  problem.is_forbidden = {false, false, false, false, true};
  EXPECT_THAT(choose(problem), ElementsAre(3, 2));
  // Of equal groups, that of the preferred backend.
  problem.candidates.push_back(one_pass({0, 1}, 0));
  problem.is_forbidden.push_back(false);
  EXPECT_THAT(choose(problem), ElementsAre(5, 2));
}

TEST(ChooseInOrder, FusesWithAProductBeforeItFusesInOnePass) {
  PlacementProblem problem = plain_chain(4);
  // Node 0 is a product, with which the first backend can fuse node 1.
  problem.candidates = {plain_covering({0}, 0, 0, 1), plain_covering({0, 1}, 0, 0, 1),
                        plain_covering({1}, 0, 0, 1), plain_covering({2}, 0, 0, 1),
                        plain_covering({3}, 0, 0, 1), one_pass({1, 2, 3}, 1),
                        one_pass({2, 3}, 1)};
  EXPECT_THAT(choose(problem), ElementsAre(1, 6));
}

TEST(ChooseInOrder, ASingleNodeInOnePassHasNoPrivilege) {
  PlacementProblem problem = plain_chain(1);
  problem.candidates = {plain_covering({0}, 0, 0, 1), one_pass({0}, 1)};
  EXPECT_THAT(choose(problem), ElementsAre(0));
}

TEST(ChooseInOrder, WeighsConversionsAgainstTimes) {
  PlacementProblem problem = plain_chain(2);
  // The second node's input exists in layout 1: 1.5 s there beats 1 s and a conversion.
  problem.candidates = {plain_covering({0}, 1, 0, 1), plain_covering({1}, 0, 0, 1),
                        plain_covering({1}, 1, 0, 1.5)};
  EXPECT_THAT(choose(problem), ElementsAre(0, 2));
  problem.candidates[2].seconds = 2.5;
  EXPECT_THAT(choose(problem), ElementsAre(0, 1));
  // Conversions of constants cost nothing.
  problem.is_constant[1] = true;
  problem.candidates[2].seconds = 1.5;
  EXPECT_THAT(choose(problem), ElementsAre(0, 1));
}

TEST(ChooseInOrder, PassesOverWhatIsForbidden) {
  PlacementProblem problem = plain_chain(1);
  problem.candidates = {plain_covering({0}, 0, 0, 1), plain_covering({0}, 0, 1, 1)};
  problem.is_forbidden = {true, false};
  EXPECT_THAT(choose(problem), ElementsAre(1));
}

// 0 -> {1, 2}, and 1, 2 -> 3: groups {0, 1} and {2, 3} are legal together; {0, 3} is not convex.
PlacementProblem diamond() {
  PlacementProblem problem = plain_chain(4);
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
  PlacementProblem problem = plain_chain(4);
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
  PlacementProblem problem = plain_chain(2);
  problem.candidates = {plain_covering({0}, 0, 0, 1)};
  EXPECT_THAT(error_of([&] { choose_in_order(problem, {"node 'a' (Relu)", "node 'b' (Relu)"}); }),
              testing::HasSubstr("node 'b' (Relu)"));
}

TEST(ExplainViolation, SaysWhatIsWrong) {
  PlacementProblem problem = plain_chain(2);
  problem.candidates = {plain_covering({0}, 0, 0, 1), plain_covering({1}, 0, 0, 1),
                        plain_covering({0, 1}, 0, 0, 1)};
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

// Random graphs and random groups: every choice must be legal.
TEST(ChooseInOrder, IsSoundOnRandomProblems) {
  std::mt19937 random(1);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 500; ++round) {
    const int nodes = 1 + below(12);
    PlacementProblem problem = plain_chain(nodes);
    for (int node = 1; node < nodes; ++node) {
      problem.nodes[static_cast<size_t>(node)].inputs = {below(node + 1), below(node + 1)};
    }
    const auto offer = [&](std::vector<int> members, int preference) {
      PlacementCandidate candidate{.preference = preference, .seconds = below(9) * 1.0};
      for (const int node : members) {
        for (const int value : problem.nodes[static_cast<size_t>(node)].inputs) {
          const bool is_inner =
              std::find(members.begin(), members.end(), value - 1) != members.end();
          if (!is_inner) candidate.inputs.push_back({value, below(2)});
        }
        candidate.outputs.push_back({node + 1, below(2)});
      }
      candidate.nodes = std::move(members);
      problem.candidates.push_back(std::move(candidate));
    };
    for (int node = 0; node < nodes; ++node) offer({node}, 2);
    for (int group = 0; group < 8; ++group) {
      std::vector<int> members;
      for (int node = 0; node < nodes; ++node) {
        if (below(3) == 0) members.push_back(node);
      }
      if (!members.empty()) offer(std::move(members), below(2));
    }
    choose(problem);
  }
}

}  // namespace
}  // namespace tessera
