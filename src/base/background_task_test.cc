#include "base/background_task.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace tessera {
namespace {

using std::chrono::milliseconds;

void work_until_cancelled(TaskEnd& end) {
  while (!end.is_cancelled()) std::this_thread::sleep_for(milliseconds(1));
}

TEST(BackgroundTask, WorksBesideTheCaller) {
  std::atomic<bool> may_end = false;
  const auto task = BackgroundTask::start([&](TaskEnd&) {
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
        task.reset();  // whose thread is not here
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// Static, and gone when the process ends: a task that reads it then would find false.
struct Alive {
  std::atomic<bool> is_alive = true;
  ~Alive() { is_alive = false; }
};

// Reads what was made static after it began.
void read_what_is_static(TaskEnd& end) {
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
    // Nobody ends it; a sanitizer of leaks still sees it.
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
    std::_Exit(BackgroundTask::start([](TaskEnd&) {}) == nullptr ? 0 : 1);
  };
  EXPECT_EXIT(start_late(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
