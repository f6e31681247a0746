#include "ops/ml/pairwise_coupling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tessera::ops {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

std::vector<double> coupled(const std::vector<double>& pairs, size_t classes) {
  std::vector<double> probabilities(classes);
  std::vector<double> scratch(coupling_numbers(classes));
  couple_pairs(pairs, probabilities, scratch);
  return probabilities;
}

// Pairs of given probabilities: r_ij = p_i / (p_i + p_j) is consistent, so these come back.
TEST(PairwiseCoupling, FindsConsistentProbabilities) {
  EXPECT_THAT(coupled({0.5 / 0.8, 0.5 / 0.7, 0.3 / 0.5}, 3),
              ElementsAre(DoubleNear(0.5, 0.01), DoubleNear(0.3, 0.01), DoubleNear(0.2, 0.01)));
  EXPECT_THAT(coupled({0.25}, 2), ElementsAre(DoubleNear(0.25, 0.01), DoubleNear(0.75, 0.01)));
}

TEST(PairwiseCoupling, StaysAwayFromZeroAndOne) {
  EXPECT_DOUBLE_EQ(pair_probability(1000, 1, 0), 1e-7);
  EXPECT_DOUBLE_EQ(pair_probability(-1000, 1, 0), 1 - 1e-7);
  EXPECT_DOUBLE_EQ(pair_probability(2, 0, 0), 0.5);
}

}  // namespace
}  // namespace tessera::ops
