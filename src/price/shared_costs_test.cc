#include "price/shared_costs.h"

#include <gtest/gtest.h>

namespace tessera::tuning {
namespace {

CostKey key_of(const std::string& work) {
  return {.work = work, .candidate = {.nodes = {}, .backend = "mylib"}};
}

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

TEST(SharedCosts, ForgetWhatWasNotUsed) {
  constexpr size_t kMax = 100;
  SharedCosts shared({}, kMax);
  const CostKey used = key_of("used");
  const CostKey unused = key_of("unused");
  const PlanKey plan{.graph = "mine"};
  CostTable first = table_with(used);
  first.plans[plan].timing.seconds = 2;
  shared.add(first);
  shared.add(table_with(unused));
  for (size_t index = 0; index < 20 * kMax; ++index) {
    shared.add(table_with(key_of(std::to_string(index))));
    EXPECT_LE(shared.size(), kMax);
    CostTable found;
    shared.look_up({used}, plan, found);
    ASSERT_EQ(found.kernels.size(), 1U) << index;
    ASSERT_EQ(found.plans.size(), 1U) << index;
  }
  CostTable found;
  shared.look_up({unused}, std::nullopt, found);
  EXPECT_TRUE(found.kernels.empty());
}

TEST(SharedCosts, MergeWhatWasNotUsedForAWhile) {
  SharedCosts shared({}, 8);
  CostTable cold;
  cold.kernels[key_of("one")].cold = Timing{2e-3, 1.9e-3, 2.1e-3, 9};
  shared.add(cold);
  for (int index = 0; index < 4; ++index) shared.add(table_with(key_of(std::to_string(index))));
  shared.add(table_with(key_of("one")));
  CostTable found;
  shared.look_up({key_of("one")}, std::nullopt, found);
  EXPECT_TRUE(found.kernels.at(key_of("one")).cold.has_value());
  EXPECT_TRUE(found.kernels.at(key_of("one")).warm.has_value());
}

// The first graphs get all that may be spent at once. Then the rest shares a quarter of the time,
// and a pause restores what the first ones had.
TEST(SharedCosts, AllowSmallGraphsAShareOfTheTime) {
  double now = 100;
  SharedCosts shared([&now] { return now; });
  const double first = shared.allowance_seconds();
  EXPECT_GE(first, 0.5);
  shared.spend(first + 1);
  EXPECT_EQ(shared.allowance_seconds(), 0) << "spent too much";
  now += 4;
  EXPECT_DOUBLE_EQ(shared.allowance_seconds(), 0);
  now += 1;
  EXPECT_DOUBLE_EQ(shared.allowance_seconds(), 0.25);
  now += 3600;
  EXPECT_DOUBLE_EQ(shared.allowance_seconds(), first);
}

}  // namespace
}  // namespace tessera::tuning
