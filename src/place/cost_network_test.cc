// Random networks against trying every assignment.
#include "place/cost_network.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera {
namespace {

class RandomNetworks {
 public:
  explicit RandomNetworks(unsigned seed) : engine_(seed) {}

  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  CostNetwork make(int variables, int factors, int most_values, int most_arity) {
    CostNetwork network;
    for (int index = 0; index < variables; ++index) {
      network.domain_sizes.push_back(whole(1, most_values));
    }
    for (int index = 0; index < factors; ++index) {
      CostFactor factor;
      const int arity = whole(1, most_arity);
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

double least_of_all(const CostNetwork& network) {
  std::vector<int> values(network.domain_sizes.size(), 0);
  double least = kForbidden;
  while (true) {
    least = std::min(least, cost_of(network, values));
    size_t place = 0;
    while (place < values.size() && ++values[place] == network.domain_sizes[place]) {
      values[place++] = 0;
    }
    if (place == values.size()) return least;
  }
}

void expect_least(const CostNetwork& network, const NetworkEffort& effort) {
  const double least = least_of_all(network);
  const NetworkSolution solution = minimise(network, effort);
  EXPECT_EQ(solution.cost, least);
  EXPECT_EQ(solution.lower_bound, least);
  EXPECT_EQ(solution.values.empty(), least == kForbidden);
  // Costs are whole numbers, so a bound just above the least is no obstacle, the least itself is.
  if (least == kForbidden) return;
  EXPECT_EQ(minimise(network, effort, least + 0.5).cost, least);
  EXPECT_TRUE(minimise(network, effort, least).values.empty());
}

TEST(CostNetwork, EliminationFindsTheLeast) {
  RandomNetworks random(1);
  for (int round = 0; round < 400; ++round) {
    expect_least(random.make(random.whole(1, 8), random.whole(1, 14), 4, 3), {});
  }
}

TEST(CostNetwork, KeepingDominatedValuesChangesNothing) {
  RandomNetworks random(2);
  for (int round = 0; round < 200; ++round) {
    expect_least(random.make(random.whole(1, 8), random.whole(1, 14), 4, 3),
                 {.removes_dominated_values = false});
  }
}

TEST(CostNetwork, BranchesWhereTablesWouldBeTooLarge) {
  RandomNetworks random(3);
  for (int round = 0; round < 300; ++round) {
    expect_least(random.make(random.whole(3, 9), random.whole(6, 18), 3, 3), {.table_cells = 8});
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
    const double least = least_of_all(network);
    EXPECT_LE(solution.lower_bound, least);
    EXPECT_GE(solution.cost, least);
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

}  // namespace
}  // namespace tessera
