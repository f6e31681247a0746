#include "base/threads/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "base/errors/log.h"
#include "base/threads/background_task.h"
#include "base/threads/parallel.h"
#include "base/threads/stopwatch.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMaxSeconds = 20;

// Whether `is_right` returns true in a forked process, which ends by a signal if it hangs.
bool holds_in_child(const std::function<bool()>& is_right) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMaxSeconds);
    ::_exit(is_right() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Calls `work` again and again on another thread.
class Repeated {
 public:
  explicit Repeated(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          while (!may_end_) {
            work();
            ++turns_;
          }
        }) {
    while (turns_ < 3) std::this_thread::yield();
  }
  ~Repeated() {
    may_end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> may_end_ = false;
  std::atomic<int> turns_ = 0;
  std::thread thread_;
};

TEST(Fork, IsCounted) {
  const uint32_t here = fork_count();
  EXPECT_TRUE(holds_in_child([here] {
    return fork_count() == here + 1 && holds_in_child([here] { return fork_count() == here + 2; });
  }));
  EXPECT_EQ(fork_count(), here);
}

TEST(Fork, WaitsForASection) {
  int first = 0;
  int second = 0;
  const Repeated change([&] {
    const NoForkSection section;
    ++first;
    std::this_thread::sleep_for(200us);
    ++second;
  });
  for (int turn = 0; turn < 50; ++turn) {
    EXPECT_TRUE(holds_in_child([&] { return first == second; }));
  }
}

TEST(Fork, WaitsForTheHolderOfAForkSafeLock) {
  std::mutex mutex;
  int first = 0;
  int second = 0;
  const auto change = [&] {
    const ForkSafeLock lock(mutex);
    ++first;
    std::this_thread::sleep_for(100us);
    ++second;
  };
  const Repeated one(change);
  const Repeated other(change);
  for (int turn = 0; turn < 50; ++turn) {
    EXPECT_TRUE(holds_in_child([&] {
      const ForkSafeLock lock(mutex);
      return first == second;
    }));
  }
}

TEST(Fork, WaitsForALimitedTimeOnly) {
  std::atomic<int> phase = 0;
  std::thread other([&] {
    const NoForkSection section;
    phase = 1;
    while (phase == 1) std::this_thread::sleep_for(1ms);
  });
  while (phase == 0) std::this_thread::yield();
  const Stopwatch stopwatch;
  EXPECT_TRUE(holds_in_child([] {
    const NoForkSection section;
    return true;
  }));
  EXPECT_LT(stopwatch.read().seconds,
            2.5 * std::chrono::duration<double>(NoForkSection::kMaxForkWait).count());
  phase = 2;
  other.join();
}

TEST(Fork, WithinASectionDoesNotWaitForItself) {
  const Stopwatch stopwatch;
  const NoForkSection section;
  EXPECT_TRUE(holds_in_child([] { return NoForkSection::is_inside(); }));
  EXPECT_LT(stopwatch.read().seconds, 1);
}

TEST(Fork, FreesAMutexThatIsHeldForLong) {
  LongHeldMutex mutex;
  std::atomic<int> phase = 0;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    phase = 1;
    while (phase == 1) std::this_thread::sleep_for(1ms);
  });
  while (phase == 0) std::this_thread::yield();
  EXPECT_TRUE(holds_in_child([&] {
    const std::unique_lock first(mutex);
    const std::unique_lock second(mutex, std::try_to_lock);
    return !second.owns_lock();
  }));
  EXPECT_FALSE(mutex.try_lock()) << "the parent's thread still holds it";
  phase = 2;
  other.join();
}

TEST(Fork, AMutexExcludesThreads) {
  LongHeldMutex mutex;
  int64_t sum = 0;
  const auto add = [&] {
    for (int turn = 0; turn < 20'000; ++turn) {
      const std::lock_guard lock(mutex);
      ++sum;
    }
  };
  std::thread first(add);
  std::thread second(add);
  std::thread third(add);
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(sum, 60'000);
}

TEST(Fork, APoolOfTheParentRunsInTheChild) {
  ThreadPool pool(3);
  const auto sum_of = [](ThreadPool& in) {
    std::atomic<int64_t> sum = 0;
    in.execute(
        [&] { in.parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; }); });
    return sum.load();
  };
  EXPECT_EQ(sum_of(pool), 1000);
  const Repeated runs([&] { sum_of(pool); });
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(holds_in_child([&] {
      ThreadPool other(2);
      return sum_of(pool) == 1000 && sum_of(other) == 1000 && pool.threads() == 3 &&
             holds_in_child([&] { return sum_of(pool) == 1000; });
    }));
  }
}

TEST(Fork, TheChildStartsTasksAndWritesToTheLog) {
  const Log log([](const std::string&) { std::this_thread::sleep_for(1ms); });
  std::atomic<int> number = 0;
  const Repeated writes([&] { log.warn(std::to_string(++number)); });
  const Repeated starts([] { BackgroundTask::start([](CancellationToken&) {})->wait(); });
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(holds_in_child([&] {
      log.warn("from the child");
      const auto task = BackgroundTask::start([](CancellationToken&) {});
      task->wait();
      return task->is_done();
    }));
  }
}

TEST(Fork, ATaskOfTheParentIsLost) {
  std::atomic<bool> may_end = false;
  const auto task = BackgroundTask::start([&](CancellationToken&) {
    while (!may_end) std::this_thread::sleep_for(1ms);
  });
  EXPECT_FALSE(task->is_lost());
  EXPECT_TRUE(holds_in_child([&] {
    task->wait();
    return task->is_lost() && !task->is_done();
  }));
  may_end = true;
}

}  // namespace
}  // namespace tessera
