#include "cache/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/threads/threads_test.h"

namespace tessera::cache {
namespace {

constexpr int64_t kMax = 1 << 20;

TEST(StoredFile, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(replace_file(folder / "a", [] { return std::string("one"); }), "");
  EXPECT_EQ(replace_file(folder / "a", [] { return std::string("other"); }), "");
  EXPECT_EQ(read_stored_file(folder / "a", kMax).bytes, "other");
  EXPECT_EQ(folder.count(), 1U) << "nothing else stays behind";
}

TEST(StoredFile, WhatIsNotThereIsNoRefusal) {
  const TemporaryFolder folder;
  const FileText text = read_stored_file(folder / "a", kMax);
  EXPECT_FALSE(text.bytes);
  EXPECT_EQ(text.refusal, "");
}

TEST(StoredFile, FilesAndFoldersThatOthersMayChangeAreRefusedWithTheRule) {
  const TemporaryFolder folder;
  write_text(folder / "a", "one");
  for (const mode_t mode : {0664, 0646, 0666}) {
    ::chmod((folder / "a").c_str(), mode);
    EXPECT_THAT(read_stored_file(folder / "a", kMax).refusal,
                HasSubstr("others than its owner may write to it"));
  }
  ::chmod((folder / "a").c_str(), 0644);
  for (const mode_t mode : {0770, 0777}) {
    ::chmod(folder.path().c_str(), mode);
    EXPECT_THAT(read_stored_file(folder / "a", kMax).refusal, HasSubstr("may write to the folder"));
  }
  ::chmod(folder.path().c_str(), 01777);
  EXPECT_EQ(read_stored_file(folder / "a", kMax).bytes, "one");
}

TEST(StoredFile, WhatIsNoFileOrTooLargeIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(read_stored_file(folder.path(), kMax).refusal, HasSubstr("regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_stored_file(folder / "pipe", kMax).refusal, HasSubstr("regular file"));
  write_text(folder / "large", "12345");
  EXPECT_THAT(read_stored_file(folder / "large", 4).refusal, HasSubstr("5 bytes"));
}

TEST(StoredFile, AFailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_text(folder / "a", "one");
  EXPECT_THAT(replace_file(folder / "none/a", [] { return std::string("x"); }),
              HasSubstr("No such file"));
  // A symbolic link with the name of the staged file is not followed.
  std::filesystem::create_symlink(folder / "a", folder / ".b.new");
  EXPECT_NE(replace_file(folder / "b", [] { return std::string("x"); }), "");
  EXPECT_EQ(read_text(folder / "a"), "one");
}

TEST(StoredFile, AnswersWhereTheDeviceIsFull) {
  // /dev/full accepts no byte; the staged file is not a regular file here either.
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_NE(replace_file("/dev/full/a", [] { return std::string("x"); }), "");
}

TEST(StoredFile, WhatAKilledProcessLeftIsReplaced) {
  const TemporaryFolder folder;
  write_text(folder / ".a.new", "half of");
  EXPECT_EQ(replace_file(folder / "a", [] { return std::string("one"); }), "");
  EXPECT_EQ(read_text(folder / "a"), "one");
  EXPECT_EQ(folder.count(), 1U);
}

TEST(StoredFile, OfTwoAtOnceEachAddsToWhatIsThere) {
  const TemporaryFolder folder;
  const auto add = [&](char letter) {
    for (int round = 0; round < 50; ++round) {
      ASSERT_EQ(replace_file(folder / "a", [&] { return read_text(folder / "a") + letter; }), "");
    }
  };
  std::thread first(add, 'a');
  std::thread second(add, 'b');
  first.join();
  second.join();
  EXPECT_EQ(read_text(folder / "a").size(), 100U);
}

// Longer than a process waits for another one.
TEST(StoredFile, ThreadsWaitForEachOtherAsLongAsItTakes) {
  const TemporaryFolder folder;
  std::vector<std::string> reasons(4);
  for_each_at_once(reasons, [&](std::string& reason) {
    reason = replace_file(folder / "a", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1800));
      return read_text(folder / "a") + "x";
    });
  });
  for (const std::string& reason : reasons) EXPECT_EQ(reason, "");
  EXPECT_EQ(read_text(folder / "a"), "xxxx");
}

TEST(StoredFile, KilledAtAnyMomentTheOldOneOrTheNewOneIsThere) {
  const TemporaryFolder folder;
  const std::string old_text(100'000, 'o');
  const std::string new_text(200'000, 'n');
  for (int round = 0; round < 60; ++round) {
    ASSERT_EQ(replace_file(folder / "a", [&] { return std::string(old_text); }), "");
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) replace_file(folder / "a", [&] { return std::string(new_text); });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::optional<std::string> found = read_stored_file(folder / "a", kMax).bytes;
    ASSERT_TRUE(found == old_text || found == new_text) << "round " << round;
  }
  EXPECT_LE(folder.count(), 2U);
}

TEST(PrivateFolder, IsMadeForTheUserAlone) {
  const TemporaryFolder folder;
  EXPECT_EQ(make_private_folder(folder / "a/b/c"), "");
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "a/b/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(make_private_folder(folder / "a/b/c"), "");
  write_text(folder / "file", "");
  EXPECT_NE(make_private_folder(folder / "file/b"), "");
}

}  // namespace
}  // namespace tessera::cache
