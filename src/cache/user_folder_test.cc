#include "cache/user_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_stamp.h"
#include "cache/cache_folder.h"
#include "cache/temporary_folder_test.h"

namespace tessera::cache {
namespace {

using testing::ElementsAre;

constexpr int64_t kDay = int64_t{24} * 3600 * 1'000'000'000;

std::vector<std::string> names_of(const std::vector<KeptFile>& files) {
  std::vector<std::string> names;
  for (const KeptFile& file : files) names.push_back(file.path.filename().string());
  return names;
}

TEST(LeastValuable, IsWhatSavesLeastABytePassingOverWhatFits) {
  const std::vector<KeptFile> files = {
      {"dear", 100, 10, 0}, {"large", 1000, 10, 0}, {"cheap", 100, 0.5, 0}, {"free", 100, 0, 0}};
  EXPECT_THAT(names_of(least_valuable(files, 1300, 0)), ElementsAre());
  EXPECT_THAT(names_of(least_valuable(files, 1299, 0)), ElementsAre("free"));
  EXPECT_THAT(names_of(least_valuable(files, 1199, 0)), ElementsAre("free", "cheap"));
  EXPECT_THAT(names_of(least_valuable(files, 100, 0)), ElementsAre("free", "cheap", "large"));
  EXPECT_THAT(names_of(least_valuable(files, 0, 0)), ElementsAre("free", "cheap", "large", "dear"));
}

TEST(LeastValuable, LosesHalfItsWorthInAMonthWithoutUse) {
  const KeptFile old{"old", 100, 3, 0};
  const KeptFile fresh{"fresh", 100, 2, 30 * kDay};
  EXPECT_THAT(names_of(least_valuable({old, fresh}, 100, 30 * kDay)), ElementsAre("old"));
  const KeptFile used{"old", 100, 3, 29 * kDay};
  EXPECT_THAT(names_of(least_valuable({used, fresh}, 100, 30 * kDay)), ElementsAre("fresh"));
}

TEST(Prune, KeepsTheKeyAndSharedPricesWhateverTheLimit) {
  const TemporaryFolder folder;
  const CacheFile cache{.ingredients = {{"model", "m"}},
                        .sections = {{.type = "plan", .content = "costs", .seconds = 2}}};
  ASSERT_EQ(save_in_folder(folder.path(), cache, nullptr).reason, "");
  std::filesystem::create_directories(folder / "packs" / "abc");
  std::filesystem::create_directories(folder / "models");
  write_text(folder / "packs" / "abc" / "1.packs", std::string(1000, 'p'));
  write_text(folder / "models" / "1.model", "m");
  write_text(folder / "key", "k");
  write_text(folder / "costs", "c");
  ASSERT_EQ(list_kept_files(folder.path()).size(), 3U);
  const Pruned first = prune(folder.path(), 900);
  EXPECT_EQ(first.files, 1);
  EXPECT_EQ(first.bytes, 1000);
  EXPECT_FALSE(std::filesystem::exists(folder / "packs" / "abc"));
  EXPECT_EQ(prune(folder.path(), 0).files, 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "key"));
  EXPECT_TRUE(std::filesystem::exists(folder / "costs"));
  EXPECT_TRUE(list_kept_files(folder.path()).empty());
}

}  // namespace
}  // namespace tessera::cache
