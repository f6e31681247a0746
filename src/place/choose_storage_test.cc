#include <gtest/gtest.h>

#include "base/containers/at.h"
#include "place/chain_problem_test.h"
#include "place/explain_violation.h"
#include "place/placement.h"

namespace tessera {
namespace {

constexpr int kDense = 0;
constexpr int kSparse = 1;

// A value that is fed sparse goes through `nodes` nodes, each with a dense candidate of preference
// 0 and a sparse candidate of preference 1, then through a node with a dense candidate only.
PlacementProblem sparse_chain(int nodes, double dense_seconds, double sparse_seconds,
                              double conversion_seconds) {
  PlacementProblem problem = chain_problem(nodes + 1);
  problem.is_sparse = {false, true};
  problem.fed_layout.assign(at(problem.value_count), kDense);
  problem.fed_layout[0] = kSparse;
  problem.conversion_seconds.assign(at(problem.value_count), conversion_seconds);
  for (int node = 0; node <= nodes; ++node) {
    problem.candidates.push_back(covering({node}, kDense, 0, dense_seconds));
    if (node == nodes) break;
    problem.candidates.push_back(covering({node}, kSparse, 1, sparse_seconds));
  }
  return problem;
}

std::vector<int> chosen(PlacementProblem problem, bool keeps_sparse = false) {
  problem.is_forbidden = choose_storage(problem, keeps_sparse);
  const Placement placement = choose_in_order(problem, node_names(problem));
  EXPECT_EQ(explain_violation(problem, placement), "");
  return placement.chosen;
}

TEST(ChooseStorage, PriceDecidesAndNotPreference) {
  EXPECT_EQ(chosen(sparse_chain(2, 5, 1, 10)), (std::vector<int>{1, 3, 4}));
  // The first node produces a dense value, so the second needs no conversion.
  EXPECT_EQ(chosen(sparse_chain(2, 1, 20, 10)), (std::vector<int>{0, 2, 4}));
  // Only the conversion decides.
  EXPECT_EQ(chosen(sparse_chain(1, 1, 5, 3)), (std::vector<int>{0, 2}));
  EXPECT_EQ(chosen(sparse_chain(1, 1, 5, 5)), (std::vector<int>{1, 2}));
}

TEST(ChooseStorage, OneWithoutAPriceDoesNotWin) {
  EXPECT_EQ(chosen(sparse_chain(1, 0, 50, 1)), (std::vector<int>{1, 2}));
}

TEST(ChooseStorage, KeepsSparseStorageIfRequested) {
  EXPECT_EQ(chosen(sparse_chain(2, 1, 20, 10), true), (std::vector<int>{1, 3, 4}));
}

TEST(ChooseStorage, OneThatCouldNotBeBuiltLeavesTheOther) {
  PlacementProblem problem = sparse_chain(1, 5, 1, 10);
  problem.is_forbidden = {false, true, false};
  EXPECT_EQ(chosen(problem), (std::vector<int>{0, 2}));
}

TEST(ChooseStorage, ExcludesGroupIfANodeStaysSparse) {
  PlacementProblem problem = sparse_chain(1, 5, 1, 10);
  problem.candidates.push_back(covering({0, 1}, kDense, 0, 5));
  EXPECT_EQ(chosen(problem), (std::vector<int>{1, 2}));
  problem.candidates[1].seconds = 100;
  EXPECT_EQ(chosen(problem), (std::vector<int>{3}));
}

TEST(ChooseStorage, DenseProblemsStayAsTheyAre) {
  PlacementProblem problem = sparse_chain(2, 5, 1, 10);
  problem.is_sparse = {};
  problem.is_forbidden = {true, false, false, false, false};
  EXPECT_EQ(choose_storage(problem, false), problem.is_forbidden);
}

}  // namespace
}  // namespace tessera
