#include "cli/bench_streams.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <latch>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "cli/interrupt.h"
#include "cli/quantities.h"

namespace tessera::cli {
namespace {

constexpr std::chrono::milliseconds kInterruptPoll{20};

// One run of all streams.
class StreamsRun {
 public:
  StreamsRun(std::vector<BoundModel>& streams, const StreamsEffort& effort)
      : streams_(streams),
        effort_(effort),
        warm_(std::ssize(streams)),
        times_(streams.size()),
        ends_(streams.size()),
        running_(streams.size()) {}

  StreamsTimes measure(Progress& progress) {
    const Interrupt interrupt;
    std::vector<std::thread> threads;
    progress.show("warming up");
    try {
      for (size_t index = 0; index < streams_.size(); ++index) {
        threads.emplace_back([this, index] { run_stream(index); });
      }
    } catch (const std::system_error& error) {
      end_unstarted(threads.size());
      for (std::thread& thread : threads) thread.join();
      throw Error(ErrorKind::OutOfMemory, "--streams",
                  "thread " + std::to_string(threads.size() + 1) + " of " +
                      std::to_string(streams_.size()) + " could not be started: " + error.what());
    }
    watch(interrupt, progress);
    for (std::thread& thread : threads) thread.join();
    return result();
  }

 private:
  void run_stream(size_t index) {
    try {
      warm_up(streams_[index]);
      warm_.arrive_and_wait();
      time_runs(index);
    } catch (...) {
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void warm_up(BoundModel& stream) {
    try {
      for (uint64_t run = 0; run <= effort_.warmup_runs && !is_stopped_; ++run) {
        stream.executor.run_any(stream.feeds);
      }
    } catch (...) {
      fail(std::current_exception());
      // The other streams wait for this one.
      warm_.count_down();
      throw;
    }
  }

  void time_runs(size_t index) {
    BoundModel& stream = streams_[index];
    std::vector<double>& times = times_[index];
    const Clock::time_point start = Clock::now();
    ends_[index] = start;
    {
      const std::lock_guard lock(mutex_);
      start_ = std::min(start_, start);
    }
    while (!is_stopped_ &&
           (times.empty() || milliseconds(ends_[index] - start) < 1000 * effort_.seconds)) {
      const Clock::time_point begin = Clock::now();
      stream.executor.run_any(stream.feeds);
      ends_[index] = Clock::now();
      times.push_back(milliseconds(ends_[index] - begin));
      ++runs_;
    }
  }

  // Keeps the first error; the others are those of cancelled streams.
  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    is_stopped_ = true;
  }

  void end_unstarted(size_t started) {
    is_stopped_ = true;
    for (size_t index = started; index < streams_.size(); ++index) warm_.count_down();
  }

  // Waits until all streams have ended. A signal handler can reach one executor only, so this
  // cancels them, again and again: a run may be about to begin.
  void watch(const Interrupt& interrupt, Progress& progress) {
    bool is_measuring = false;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kInterruptPoll, [&] { return running_ == 0; })) {
      if (interrupt.is_interrupted()) is_stopped_ = was_interrupted_ = true;
      if (is_stopped_) {
        for (BoundModel& stream : streams_) stream.executor.cancel();
      } else if (!is_measuring && runs_ > 0) {
        is_measuring = true;
        progress.show_live([this, start = start_] { return measuring_text(start); });
      }
    }
    progress.show("ending");
  }

  std::string measuring_text(Clock::time_point start) const {
    return "measuring: " + decimal_text(milliseconds(Clock::now() - start) / 1000, 1) + " of " +
           decimal_text(effort_.seconds, 1) + " s, " + count_text(runs_, "run") + " (Ctrl-C: stop)";
  }

  StreamsTimes result() const {
    StreamsTimes all;
    Clock::time_point end = start_;
    for (size_t index = 0; index < streams_.size(); ++index) {
      all.run_ms.insert(all.run_ms.end(), times_[index].begin(), times_[index].end());
      end = std::max(end, ends_[index]);
    }
    if (error_ && !(was_interrupted_ && !all.run_ms.empty())) std::rethrow_exception(error_);
    if (!all.run_ms.empty()) all.elapsed_ms = milliseconds(end - start_);
    return all;
  }

  std::vector<BoundModel>& streams_;
  const StreamsEffort effort_;
  std::latch warm_;
  std::vector<std::vector<double>> times_;  // by stream; each thread writes its own
  std::vector<Clock::time_point> ends_;     // of the last run, by stream
  std::atomic<int64_t> runs_ = 0;
  std::atomic<bool> is_stopped_ = false;
  bool was_interrupted_ = false;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  size_t running_;
  Clock::time_point start_ = Clock::time_point::max();
  std::exception_ptr error_;
};

}  // namespace

StreamsTimes measure_streams(std::vector<BoundModel>& streams, const StreamsEffort& effort,
                             Progress& progress) {
  return StreamsRun(streams, effort).measure(progress);
}

}  // namespace tessera::cli
