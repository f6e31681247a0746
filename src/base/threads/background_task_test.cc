#include "base/threads/background_task.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace tessera {
namespace {

using std::chrono::milliseconds;

void work_until_cancelled(CancellationToken& end) {
  while (!end.is_cancelled()) std::this_thread::sleep_for(milliseconds(1));
}

TEST(BackgroundTask, WorksBesideTheCaller) {
  std::atomic<bool> may_end = false;
  const auto task = BackgroundTask::start([&](CancellationToken&) {
    while (!may_end) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_FALSE(task->is_done());
  may_end = true;
  task->wait();
  EXPECT_TRUE(task->is_done());
}

TEST(BackgroundTask, IsCancelledByItsOwner) {
  auto task = BackgroundTask::start(work_until_cancelled);
  task.reset();
}

// Waits for a flag that only `wake` sets.
struct Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  bool may_end = false;

  void wait(CancellationToken& /*end*/) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return may_end; });
  }
  void wake() {
    const std::lock_guard lock(mutex);
    may_end = true;
    changed.notify_all();
  }
};

TEST(BackgroundTask, IsWokenWhenItIsCancelled) {
  Waiting waiting;
  auto task = BackgroundTask::start([&](CancellationToken& end) { waiting.wait(end); },
                                    [&] { waiting.wake(); });
  EXPECT_FALSE(task->is_done());
  task.reset();
  EXPECT_TRUE(waiting.may_end);
}

TEST(BackgroundTaskDeathTest, IsWokenAtTheEndOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leak_and_exit = [] {
    static Waiting& waiting = *new Waiting;
    static auto& task = *new std::unique_ptr<BackgroundTask>(BackgroundTask::start(
        [](CancellationToken& end) { waiting.wait(end); }, [] { waiting.wake(); }));
    (void)task;
    std::exit(0);
  };
  EXPECT_EXIT(leak_and_exit(), testing::ExitedWithCode(0), "");
}

TEST(BackgroundTask, MayOutliveNothingInAForkedProcess) {
  auto task = BackgroundTask::start(work_until_cancelled);
  EXPECT_EXIT(
      {
        task.reset();  // the parent's thread does not exist here
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// The system may give a thread of the forked process the identifier of one that exists only in the
// parent.
TEST(BackgroundTaskDeathTest, IsNoThreadOfAForkedProcess) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "the sanitizer takes what the thread that fork() left behind owned for a leak";
#endif
  // In a new process: the destructors of oneTBB abort in a forked one if other tests ran loops.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fork_and_exit = [] {
    auto task = BackgroundTask::start(work_until_cancelled);
    const pid_t child = ::fork();
    if (child == 0) {
      {
        const auto own = BackgroundTask::start(work_until_cancelled);
        const auto other = BackgroundTask::start(work_until_cancelled);
        task.reset();
      }
      std::exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    std::exit(status == 0 ? 0 : 1);
  };
  EXPECT_EXIT(fork_and_exit(), testing::ExitedWithCode(0), "");
}

// A static object that is destroyed at exit: a task that reads it afterwards finds false.
struct Alive {
  std::atomic<bool> is_alive = true;
  ~Alive() { is_alive = false; }
};

// Reads a static object that was constructed after the task had begun.
void read_what_is_static(CancellationToken& end) {
  static Alive made_late;
  while (!end.is_cancelled()) {
    if (!made_late.is_alive) ::_exit(7);
  }
  std::this_thread::sleep_for(milliseconds(50));
  if (!made_late.is_alive) ::_exit(8);
}

TEST(BackgroundTaskDeathTest, EndsBeforeWhatItUses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leak_and_exit = [](bool from_main_thread) {
    // Nobody destroys the task; static so that leak sanitizers can reach it.
    [[maybe_unused]] static BackgroundTask* kept = nullptr;
    kept = BackgroundTask::start(read_what_is_static).release();
    std::this_thread::sleep_for(milliseconds(50));
    if (from_main_thread) std::exit(0);
    std::thread([] { std::exit(0); }).join();
  };
  EXPECT_EXIT(leak_and_exit(true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(leak_and_exit(false), testing::ExitedWithCode(0), "");
}

// Work that owns its task, and ends while another thread waits for it.
TEST(BackgroundTaskDeathTest, MayDestroyItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [](bool is_waited_for) {
    const auto owned = std::make_shared<std::unique_ptr<BackgroundTask>>();
    std::atomic<bool> is_over = false;
    std::atomic<bool> is_owned = false;
    *owned = BackgroundTask::start([&, owned](CancellationToken& token) {
      while (!is_owned || (is_waited_for && !token.is_cancelled())) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      owned->reset();
      is_over = true;
    });
    is_owned = true;
    if (is_waited_for) end_background_tasks();
    while (!is_over) std::this_thread::sleep_for(milliseconds(1));
    std::exit(0);
  };
  EXPECT_EXIT(end(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end(true), testing::ExitedWithCode(0), "");
}

TEST(BackgroundTask, GoesOnWithoutAnOwner) {
  std::atomic<bool> may_end = false;
  std::atomic<bool> has_ended = false;
  BackgroundTask::leave(BackgroundTask::start([&](CancellationToken& end) {
    while (!may_end) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_FALSE(end.is_cancelled());
    has_ended = true;
  }));
  may_end = true;
  while (!has_ended) std::this_thread::sleep_for(milliseconds(1));
}

TEST(BackgroundTaskDeathTest, WithoutAnOwnerEndsBeforeWhatItUses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        BackgroundTask::leave(BackgroundTask::start(read_what_is_static));
        std::this_thread::sleep_for(milliseconds(20));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(BackgroundTaskDeathTest, NoneBeginsAtTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto start_late = [] {
    end_background_tasks();
    std::_Exit(BackgroundTask::start([](CancellationToken&) {}) == nullptr ? 0 : 1);
  };
  EXPECT_EXIT(start_late(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
