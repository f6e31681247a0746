#include "cache/file_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "base/files/temporary_folder_test.h"
#include "base/threads/threads_test.h"

namespace tessera::cache {
namespace {

TEST(FileLock, OneHasItAndTheOthersKnowWho) {
  const TemporaryFolder folder;
  {
    const FileLock::Attempt first = FileLock::try_lock(folder / "lock");
    ASSERT_TRUE(first.lock) << first.failure;
    const FileLock::Attempt second = FileLock::try_lock(folder / "lock");
    EXPECT_FALSE(second.lock);
    EXPECT_EQ(second.holder, "another thread of this process");
    EXPECT_EQ(second.failure, "");
  }
  EXPECT_EQ(folder.count(), 0U) << "the file goes with the lock";
  EXPECT_TRUE(FileLock::try_lock(folder / "lock").lock);
}

TEST(FileLock, SaysWhyNobodyCanHaveIt) {
  const FileLock::Attempt attempt = FileLock::try_lock("/nonexistent/lock");
  EXPECT_FALSE(attempt.lock);
  EXPECT_EQ(attempt.holder, "");
  EXPECT_NE(attempt.failure, "");
}

TEST(FileLock, PassesOnWhenItsHolderIsKilled) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::optional<FileLock> held;
    while (!held) {
      FileLock::Attempt attempt = FileLock::try_lock(folder / "lock");
      if (attempt.lock) held.emplace(std::move(*attempt.lock));
    }
    while (true) ::pause();
  }
  while (FileLock::try_lock(folder / "lock").lock) std::this_thread::yield();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FileLock::try_lock(folder / "lock").lock);
}

TEST(FileLock, NamesTheProcessThatHoldsIt) {
  const TemporaryFolder folder;
  const FileLock::Attempt first = FileLock::try_lock(folder / "lock");
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock::Attempt second = FileLock::try_lock(folder / "lock");
    ::_exit(second.holder == "process " + std::to_string(::getppid()) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A forked process has copies of all descriptors.
TEST(FileLock, IsNotHeldByAForkedProcess) {
  const TemporaryFolder folder;
  const pid_t holder = ::fork();
  if (holder == 0) {
    FileLock::Attempt held = FileLock::try_lock(folder / "lock");
    const pid_t child = ::fork();
    if (child == 0) {
      held.lock.reset();  // must not remove the file of the parent either
      write_text(folder / "child", std::to_string(::getpid()));
      while (true) ::pause();
    }
    while (true) ::pause();
  }
  while (read_text(folder / "child").empty()) std::this_thread::yield();
  EXPECT_FALSE(FileLock::try_lock(folder / "lock").lock);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_TRUE(FileLock::try_lock(folder / "lock").lock);
  ::kill(std::stoi(read_text(folder / "child")), SIGKILL);
}

TEST(FileLock, ThreadsThatTakeItInTurnsAreNeverInsideTogether) {
  const TemporaryFolder folder;
  std::atomic<int> inside = 0;
  std::atomic<bool> was_crowded = false;
  const auto work = [&] {
    for (int round = 0; round < 200;) {
      const FileLock::Attempt attempt = FileLock::try_lock(folder / "lock");
      if (!attempt.lock) {
        std::this_thread::yield();
        continue;
      }
      if (++inside != 1) was_crowded = true;
      --inside;
      ++round;
    }
  };
  run_at_once(4, [&](int /*thread*/) { work(); });
  EXPECT_FALSE(was_crowded);
}

}  // namespace
}  // namespace tessera::cache
