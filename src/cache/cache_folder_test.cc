#include "cache/cache_folder.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera::cache {
namespace {

CacheFile file_of(const std::string& graph, const std::string& type = "plan") {
  CacheFile file{.ingredients = {{"graph", graph}}};
  file.put({.type = type, .content = "costs", .origin = Origin::Untrusted, .bytes = graph});
  return file;
}

std::filesystem::path saved(const TemporaryFolder& folder, const CacheFile& file) {
  const SavedCache result = save_in_folder(folder.path(), file, nullptr);
  EXPECT_EQ(result.reason, "");
  return result.path;
}

FoundCache found(const TemporaryFolder& folder, const CacheFile& file) {
  return find_in_folder(folder.path(), file.ingredients, nullptr);
}

TEST(CacheFolder, FileIsNamedAfterTheLastSevenDigits) {
  const TemporaryFolder folder;
  const CacheFile file = file_of("a");
  const std::filesystem::path path = saved(folder, file);
  EXPECT_EQ(path.filename().string(), text(file.fingerprint()).substr(33) + ".cache");
  const FoundCache again = found(folder, file);
  EXPECT_EQ(again.file, file);
  EXPECT_EQ(again.path, path);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre(path));
}

TEST(CacheFolder, WhatIsNotThereIsNotFound) {
  const TemporaryFolder folder;
  const FoundCache nothing = found(folder, file_of("a"));
  EXPECT_FALSE(nothing.file);
  EXPECT_EQ(nothing.reason, "");
}

TEST(CacheFolder, SectionsAreReplacedOneByOne) {
  const TemporaryFolder folder;
  saved(folder, file_of("a", "one"));
  saved(folder, file_of("a", "other"));
  EXPECT_EQ(found(folder, file_of("a")).file->sections.size(), 2U);
  CacheFile newer = file_of("a", "one");
  newer.sections[0].bytes = "newer";
  saved(folder, newer);
  const FoundCache again = found(folder, newer);
  EXPECT_EQ(again.file->find("one", "costs")->bytes, "newer");
  EXPECT_EQ(again.file->find("other", "costs")->bytes, "a");
}

TEST(CacheFolder, GainsAreThoseOfThisMachine) {
  const TemporaryFolder folder;
  const auto save = [&](const std::string& machine, const std::string& graph,
                        const std::string& gain) {
    CacheFile file{.ingredients = {{"processor", machine}, {"graph", graph}}};
    file.set_note(kGainNote, gain);
    saved(folder, file);
  };
  save("this", "a", "0.174");
  save("this", "b", "0");
  save("this", "c", "much");
  save("this", "d", "7");
  save("this", "e", "");
  save("other", "a", "0.5");
  std::ofstream(folder.path() / "0123456.cache") << "damaged";
  const std::vector<Ingredient> machine = {{"processor", "this"}};
  EXPECT_THAT(read_gains(folder.path(), machine), testing::UnorderedElementsAre(0.174, 0));
  EXPECT_THAT(read_gains(folder.path() / "none", machine), IsEmpty());
}

// Constructs a collision: copies the bytes of one file to the name of another.
TEST(CacheFolder, OnACollisionTheSecondTakesMoreDigits) {
  const TemporaryFolder folder;
  const CacheFile ours = file_of("a");
  const CacheFile foreign = file_of("b");
  const std::string short_name = file_name(ours.fingerprint(), 7);
  write_text(folder / short_name, encode(foreign, nullptr));
  const std::filesystem::path path = saved(folder, ours);
  EXPECT_EQ(path.filename(), file_name(ours.fingerprint(), 8));
  EXPECT_EQ(found(folder, ours).file, ours);
  EXPECT_EQ(read_text(folder / short_name), encode(foreign, nullptr));
  std::filesystem::remove(folder / short_name);
  EXPECT_EQ(found(folder, ours).file, ours);
}

TEST(CacheFolder, DamagedFilesAreMissesWithAReasonAndReplaced) {
  const TemporaryFolder folder;
  const CacheFile file = file_of("a");
  const std::filesystem::path path = saved(folder, file);
  write_text(path, "damaged");
  const FoundCache damaged = found(folder, file);
  EXPECT_FALSE(damaged.file);
  EXPECT_THAT(damaged.reason, HasSubstr(path.string()));
  EXPECT_EQ(saved(folder, file), path);
  EXPECT_EQ(found(folder, file).file, file);
}

TEST(CacheFolder, WhatOthersMayWriteIsNotUsed) {
  const TemporaryFolder folder;
  const CacheFile file = file_of("a");
  const std::filesystem::path path = saved(folder, file);
  ::chmod(path.c_str(), 0666);
  EXPECT_THAT(found(folder, file).reason, HasSubstr("others than its owner"));
  ::chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(save_in_folder(folder.path(), file, nullptr).reason,
              HasSubstr("may write to the folder"));
}

TEST(CacheFolder, ReadingAFileByNameFailsWithWhatWasExpected) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] { read_cache_file(folder / "none.cache", nullptr); }),
              HasSubstr("none.cache"));
  EXPECT_EQ(read_cache_file(saved(folder, file_of("a")), nullptr), file_of("a"));
}

TEST(CacheFolder, OtherNamesAreNoCaches) {
  const TemporaryFolder folder;
  for (const char* name : {"a.cache", "123456.cache", "xyzxyzx.cache", "1234567.txt", "key"}) {
    write_text(folder / name, "");
  }
  write_text(folder / "1234567.cache", "");
  EXPECT_THAT(list_folder(folder.path()), ElementsAre(folder / "1234567.cache"));
  EXPECT_TRUE(list_folder(folder / "none").empty());
}

}  // namespace
}  // namespace tessera::cache
