#include "price/cost_store.h"

#include <gmock/gmock.h>

#include "base/temporary_folder_test.h"

namespace tessera::tuning {
namespace {

const std::vector<cache::Ingredient> kMachine = {{"processor", "fast"}};

std::vector<PricedLibrary> libraries(const std::string& version = "1.2") {
  return {{"mylib", "version=" + version + ".0;", {{"version", version}}}};
}

CostTable costs_of(const std::string& work, double seconds = 1e-3) {
  CostTable costs{.machine = "here"};
  const CostKey key{.work = work, .backend = "mylib", .ingredients = "version=1.2.0;"};
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
