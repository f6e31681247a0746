// Predicted time of a choice, and the paths on which values are converted.
#include <gtest/gtest.h>

#include <limits>

#include "place/placement.h"

namespace tessera {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<int> way(const std::vector<double>& prices, const std::vector<int>& present,
                     int wanted) {
  return cheapest_conversions(3, present, wanted, [&](int from, int to) {
    return prices[static_cast<size_t>(from) * 3 + static_cast<size_t>(to)];
  });
}

TEST(CheapestWay, IsDirectOrAround) {
  const std::vector<double> dear = {0, 1, 9, 9, 0, 2, 9, 9, 0};
  EXPECT_EQ(way(dear, {0}, 2), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(way(dear, {0}, 1), (std::vector<int>{0, 1}));
  EXPECT_EQ(way(dear, {0, 1}, 2), (std::vector<int>{1, 2})) << "from what is nearest";
  EXPECT_EQ(way(dear, {2}, 2), (std::vector<int>{2}));
  const std::vector<double> cheap = {0, 1, 3, 9, 0, 2, 9, 9, 0};
  EXPECT_EQ(way(cheap, {0}, 2), (std::vector<int>{0, 2})) << "of equal ones the direct one";
  const std::vector<double> shut = {0, 1, kNever, 9, 0, kNever, 9, 9, 0};
  EXPECT_EQ(way(shut, {0}, 2), std::vector<int>{});
}

TEST(PredictedSeconds, GoesTheCheapestWayAndPaysForItOnce) {
  // Two nodes read value 0 in layout 2, which is reached through layout 1; then one reads it in
  // layout 1.
  PlacementProblem problem;
  problem.layout_count = 3;
  problem.value_count = 4;
  problem.is_constant.assign(4, false);
  problem.conversion_prices = {{0, 1, 9, 9, 0, 2, 9, 9, 0}, {}, {}, {}};
  problem.conversion_seconds.assign(4, 100);
  problem.conversion_hops.assign(3, {0, 1, 1});
  Placement placement;
  for (int node = 0; node < 3; ++node) {
    problem.nodes.push_back({{0}, {node + 1}});
    const int layout = node < 2 ? 2 : 1;
    problem.candidates.push_back(
        {.seconds = 10, .nodes = {node}, .inputs = {{0, layout}}, .outputs = {{node + 1, 0}}});
    placement.chosen.push_back(node);
  }
  EXPECT_EQ(predicted_seconds(problem, placement), 33);
}

}  // namespace
}  // namespace tessera
