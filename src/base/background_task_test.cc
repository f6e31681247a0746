#include "base/background_task.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
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

TEST(BackgroundTask, MayOutliveNothingInAForkedProcess) {
  auto task = BackgroundTask::start(work_until_cancelled);
  EXPECT_EXIT(
      {
        task.reset();  // the parent's thread does not exist here
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
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
