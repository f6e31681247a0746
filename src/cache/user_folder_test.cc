#include "cache/user_folder.h"

#include <chrono>

#include "base/files/file_stamp.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "cache/cache_folder.h"
#include "cache/file_lock.h"
#include "cache/stored_file.h"

namespace tessera::cache {
namespace {

std::vector<std::string> names_of(const std::vector<KeptFile>& files) {
  std::vector<std::string> names;
  for (const KeptFile& file : files) names.push_back(file.path.filename().string());
  return names;
}

TEST(Beyond, GoesWhatWasNotUsedForLongest) {
  const std::vector<KeptFile> files = {
      {"new", 100, 40}, {"old", 1000, 10}, {"oldest", 10, 5}, {"middle", 100, 20}};
  EXPECT_THAT(names_of(beyond(files, {.bytes = 1210}, 40)), ElementsAre());
  EXPECT_THAT(names_of(beyond(files, {.bytes = 1209}, 40)), ElementsAre("oldest"));
  EXPECT_THAT(names_of(beyond(files, {.bytes = 300}, 40)), ElementsAre("oldest", "old"));
  EXPECT_THAT(names_of(beyond(files, {.bytes = 0}, 40)),
              ElementsAre("oldest", "old", "middle", "new"));
  EXPECT_THAT(names_of(beyond(files, {.files = 3}, 40)), ElementsAre("oldest"));
  EXPECT_THAT(names_of(beyond(files, {.age_ns = 20}, 40)), ElementsAre("oldest", "old"));
}

TEST(Prune, LeavesWhatAProcessUses) {
  const TemporaryFolder folder;
  write_text(folder / "1234567.cache", "one");
  write_text(folder / "2345678.cache", "other");
  {
    const FileHandle held = hold_in_use(folder / "1234567.cache");
    ASSERT_TRUE(held.is_open());
    EXPECT_EQ(prune(list_kept_files(folder.path()), {.bytes = 0}).files, 1);
    EXPECT_TRUE(std::filesystem::exists(folder / "1234567.cache"));
  }
  EXPECT_EQ(prune(list_kept_files(folder.path()), {.bytes = 0}).files, 1);
}

TEST(AutomaticFiles, AreThoseThatBindsWrote) {
  const TemporaryFolder folder;
  for (const char* by : {kByBind, kBySaveCache}) {
    const CacheFile file{.ingredients = {{"model", by}}, .notes = {{kWrittenBy, by}}};
    ASSERT_EQ(save_in_folder(folder.path(), file, nullptr).reason, "");
  }
  write_text(folder / "1234567.cache", "damaged");
  EXPECT_EQ(list_folder(folder.path()).size(), 3U);
  ASSERT_EQ(list_automatic_files(folder.path()).size(), 1U);
  // A file that was saved explicitly stays so, even if an automatic save adds to it.
  const CacheFile again{.ingredients = {{"model", kBySaveCache}}, .notes = {{kWrittenBy, kByBind}}};
  ASSERT_EQ(save_in_folder(folder.path(), again, nullptr).reason, "");
  EXPECT_EQ(list_automatic_files(folder.path()).size(), 1U);
}

TEST(Sweep, RemovesWhatIsLeftAndNothingElse) {
  const TemporaryFolder folder;
  const std::string lock = "." + std::string(40, 'a') + ".lock";
  for (const std::string& name :
       {lock, std::string(".1234567.cache.new"), std::string(".costs.new"),
        std::string(".0123.packs.new"), std::string(".0123.model.new")}) {
    write_text(folder / name, "");
  }
  for (const char* name : {".new", "a.new", ".other.lock", ".lock", "1234567.cache", "key", "x"}) {
    write_text(folder / name, "");
  }
  {
    const FileLock::Attempt attempt =
        FileLock::try_lock(folder / ("." + std::string(40, 'b') + ".lock"));
    ASSERT_TRUE(attempt.lock);
    write_text(folder / "key.abcdef", "it is being made");
    sweep(folder.path());
    EXPECT_EQ(folder.count(), 9U) << "that of a living process, and a key in the making, stay";
  }
  EXPECT_FALSE(std::filesystem::exists(folder / lock));
  EXPECT_TRUE(std::filesystem::exists(folder / "key"));
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
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000);
  std::filesystem::last_write_time(folder / "packs" / "abc" / "1.packs", long_ago);
  std::filesystem::last_write_time(folder / "packs" / "abc", long_ago);
  const Pruned first = prune(list_kept_files(folder.path()), {.bytes = 900});
  EXPECT_EQ(first.files, 1);
  EXPECT_EQ(first.bytes, 1000);
  EXPECT_FALSE(std::filesystem::exists(folder / "packs" / "abc"));
  EXPECT_EQ(prune(list_kept_files(folder.path()), {.bytes = 0}).files, 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "key"));
  EXPECT_TRUE(std::filesystem::exists(folder / "costs"));
  EXPECT_TRUE(list_kept_files(folder.path()).empty());
}

}  // namespace
}  // namespace tessera::cache
