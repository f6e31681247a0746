#include "price/shared_costs.h"

#include <gtest/gtest.h>

namespace tessera::tuning {
namespace {

CostKey key_of(const std::string& work) { return {.work = work, .backend = "mylib"}; }

CostTable table_with(const CostKey& key) {
  CostTable table;
  table.kernels[key].warm = Timing{1e-3, 0.9e-3, 1.1e-3, 9};
  return table;
}

TEST(SharedCosts, GiveWhatIsAskedForAndNothingElse) {
  SharedCosts shared;
  shared.add(table_with(key_of("one")));
  shared.add(table_with(key_of("other")));
  CostTable table;
  shared.look_up({key_of("one"), std::nullopt, key_of("nobody's")}, std::nullopt, table);
  ASSERT_EQ(table.kernels.size(), 1U);
  EXPECT_EQ(table.kernels.begin()->first.work, "one");
}

TEST(SharedCosts, GiveThePlanOfTheGraph) {
  SharedCosts shared;
  CostTable table = table_with(key_of("one"));
  const PlanKey mine{.graph = "mine"};
  table.plans[mine].timing.seconds = 2;
  table.plans[{.graph = "another"}].timing.seconds = 3;
  shared.add(table);
  CostTable found;
  shared.look_up({}, mine, found);
  ASSERT_EQ(found.plans.size(), 1U);
  EXPECT_EQ(found.plans.at(mine).timing.seconds, 2);
  CostTable without;
  shared.look_up({}, std::nullopt, without);
  EXPECT_TRUE(without.plans.empty());
}

// Each further graph gets a little, even if the first ones used everything; it gets more if they
// used nothing.
TEST(SharedCosts, AllowShortGraphsLittleTogether) {
  SharedCosts shared;
  const double first = shared.allowance_seconds();
  EXPECT_GT(first, 0.1);
  shared.spend(first);
  const double each = shared.allowance_seconds();
  EXPECT_GT(each, 0);
  EXPECT_LT(each, first / 10);
  EXPECT_GT(shared.allowance_seconds(), each);
  shared.spend(1);
  EXPECT_EQ(shared.allowance_seconds(), 0) << "spent too much";
}

}  // namespace
}  // namespace tessera::tuning
