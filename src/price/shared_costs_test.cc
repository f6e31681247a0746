#include "price/shared_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/temporary_folder_test.h"

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

const std::vector<cache::Ingredient> kMachine = {{"processor", "fast"}};

std::vector<PricedLibrary> libraries(const std::string& version = "1.2") {
  return {{"mylib", "version=" + version + ".0;", {{"version", version}}}};
}

CostTable costs_of(const std::string& work, double seconds = 1e-3) {
  CostTable costs{.machine = "here"};
  const CostKey key{.work = work,
                    .candidate = {.nodes = {}, .backend = "mylib"},
                    .ingredients = "version=1.2.0;"};
  costs.kernels[key] = {.warm = Timing{seconds, seconds, seconds, 10}};
  return costs;
}

void add(const TemporaryFolder& folder, const CostTable& costs) {
  EXPECT_EQ(add_to_cost_store(folder.path(), kMachine, libraries(), costs), "");
}

TEST(CostStore, GathersWhatModelsMeasure) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_cost_store(folder.path(), kMachine, libraries()).kernels.empty());
  add(folder, costs_of("a"));
  add(folder, costs_of("b"));
  add(folder, costs_of("b", 5e-3));
  const CostTable all = read_cost_store(folder.path(), kMachine, libraries());
  ASSERT_EQ(all.kernels.size(), 2U);
  EXPECT_EQ(all.kernels.rbegin()->second.warm->seconds, 5e-3);
}

TEST(CostStore, IsOfOneMachineAndOfEachLibrarysVersion) {
  const TemporaryFolder folder;
  add(folder, costs_of("a"));
  EXPECT_TRUE(read_cost_store(folder.path(), {{"processor", "slow"}}, libraries()).kernels.empty());
  EXPECT_TRUE(read_cost_store(folder.path(), kMachine, libraries("1.3")).kernels.empty());
  EXPECT_EQ(read_cost_store(folder.path(), kMachine, libraries()).kernels.size(), 1U);
}

TEST(CostStore, DamageIsAsIfItWereNotThereAndIsReplaced) {
  const TemporaryFolder folder;
  add(folder, costs_of("a"));
  const std::string bytes = read_text(folder / "costs");
  for (size_t at = 0; at < bytes.size(); at += 7) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      write_text(folder / "costs", damaged);
      ASSERT_TRUE(read_cost_store(folder.path(), kMachine, libraries()).kernels.empty()) << at;
    }
    write_text(folder / "costs", bytes.substr(0, at));
    ASSERT_TRUE(read_cost_store(folder.path(), kMachine, libraries()).kernels.empty()) << at;
  }
  add(folder, costs_of("b"));
  EXPECT_EQ(read_cost_store(folder.path(), kMachine, libraries()).kernels.size(), 1U);
}

TEST(CostStore, SaysWhyItCannotBeWritten) {
  EXPECT_NE(add_to_cost_store("/proc/nowhere", kMachine, libraries(), costs_of("a")), "");
}

}  // namespace

}  // namespace tessera::tuning
