// Compares the solution of random networks with exhaustive search.
#include "solver/cost_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "solver/explain_violation.h"

namespace tessera {
namespace {

class RandomNetworks {
 public:
  explicit RandomNetworks(unsigned seed) : engine_(seed) {}

  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  CostNetwork make(int variables, int factors, int max_values, int max_arity) {
    CostNetwork network;
    for (int index = 0; index < variables; ++index) {
      network.domain_sizes.push_back(whole(1, max_values));
    }
    for (int index = 0; index < factors; ++index) {
      CostFactor factor;
      const int arity = whole(1, max_arity);
      for (int variable = 0; variable < variables; ++variable) {
        const int left = arity - static_cast<int>(factor.variables.size());
        if (whole(1, variables - variable) <= left) factor.variables.push_back(variable);
      }
      size_t cells = 1;
      for (const int variable : factor.variables) {
        cells *= static_cast<size_t>(network.domain_sizes[static_cast<size_t>(variable)]);
      }
      for (size_t cell = 0; cell < cells; ++cell) {
        factor.costs.push_back(whole(1, 8) == 1 ? kForbidden : whole(0, 20));
      }
      network.factors.push_back(std::move(factor));
    }
    return network;
  }

 private:
  std::mt19937 engine_;
};

double minimum_of_all(const CostNetwork& network) {
  std::vector<int> values(network.domain_sizes.size(), 0);
  double min_cost = kForbidden;
  while (true) {
    min_cost = std::min(min_cost, cost_of(network, values));
    size_t last = 0;
    while (last < values.size() && ++values[last] == network.domain_sizes[last]) {
      values[last++] = 0;
    }
    if (last == values.size()) return min_cost;
  }
}

void expect_minimum(const CostNetwork& network, const NetworkEffort& effort) {
  const double min_cost = minimum_of_all(network);
  const NetworkSolution solution = minimise(network, effort);
  EXPECT_EQ(solution.cost, min_cost);
  EXPECT_EQ(solution.lower_bound, min_cost);
  EXPECT_EQ(solution.values.empty(), min_cost == kForbidden);
  // Costs are integers. An upper bound just above the minimum does not exclude it; the minimum
  // itself does.
  if (min_cost == kForbidden) return;
  EXPECT_EQ(minimise(network, effort, min_cost + 0.5).cost, min_cost);
  EXPECT_TRUE(minimise(network, effort, min_cost).values.empty());
}

TEST(CostNetwork, EliminationFindsTheLeast) {
  RandomNetworks random(1);
  for (int round = 0; round < 400; ++round) {
    expect_minimum(random.make(random.whole(1, 8), random.whole(1, 14), 4, 3), {});
  }
}

TEST(CostNetwork, KeepingDominatedValuesChangesNothing) {
  RandomNetworks random(2);
  for (int round = 0; round < 200; ++round) {
    expect_minimum(random.make(random.whole(1, 8), random.whole(1, 14), 4, 3),
                   {.removes_dominated_values = false});
  }
}

TEST(CostNetwork, BranchesWhereTablesWouldBeTooLarge) {
  RandomNetworks random(3);
  for (int round = 0; round < 300; ++round) {
    expect_minimum(random.make(random.whole(3, 9), random.whole(6, 18), 3, 3), {.table_cells = 8});
  }
}

TEST(CostNetwork, GivesABoundWhenItMustStop) {
  RandomNetworks random(4);
  int unfinished = 0;
  for (int round = 0; round < 200; ++round) {
    const CostNetwork network = random.make(9, 22, 3, 3);
    const NetworkSolution solution = minimise(
        network,
        {.table_cells = 4, .bound_cells = 4, .work_cells = 100, .removes_dominated_values = false});
    const double min_cost = minimum_of_all(network);
    EXPECT_LE(solution.lower_bound, min_cost);
    EXPECT_GE(solution.cost, min_cost);
    if (!solution.values.empty()) {
      EXPECT_EQ(cost_of(network, solution.values), solution.cost);
    }
    if (solution.lower_bound < solution.cost) ++unfinished;
  }
  EXPECT_GT(unfinished, 0);
}

TEST(CostNetwork, NothingToDecide) {
  EXPECT_EQ(minimise({}).cost, 0);
  EXPECT_EQ(minimise({{3}, {}}).cost, 0);
  EXPECT_TRUE(minimise({{0}, {}}).values.empty());
}

TEST(CostNetwork, TheJudgeSeesWhatIsWrong) {
  const CostNetwork network = {
      .domain_sizes = {2, 3}, .factors = {{{0, 1}, {5, 4, 3, 2, 1, kForbidden}}, {{1}, {1, 2, 3}}}};
  const NetworkSolution right = minimise(network);
  EXPECT_EQ(right.cost, 3);
  EXPECT_EQ(explain_violation(network, right), "");
  const auto spoiled = [&](const auto& spoil) {
    NetworkSolution wrong = right;
    spoil(wrong);
    return explain_violation(network, wrong);
  };
  using testing::HasSubstr;
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.values.pop_back(); }), HasSubstr("found 1"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.values[1] = 3; }), HasSubstr("has no value 3"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.values[1] = -1; }), HasSubstr("has no value -1"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.values = {0, 0}; }), HasSubstr("sum to 6"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.cost = 2; }), HasSubstr("not 2"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.lower_bound = 4; }), HasSubstr("above the cost"));
  EXPECT_THAT(spoiled([](auto& wrong) { wrong.values = {1, 2}; }), HasSubstr("forbidden"));
}

}  // namespace
}  // namespace tessera
