#include "base/background_task.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {

struct BackgroundTask::State {
  TaskEnd end;
  std::atomic<bool> is_done = false;
  pid_t process = ::getpid();
  std::mutex mutex;  // of the next one
  std::thread thread;

  void join() {
    const std::lock_guard lock(mutex);
    if (!thread.joinable()) return;
    // A process that was forked has the object and not the thread; and a library that calls exit()
    // in the thread must not wait for itself.
    const bool has_thread = process == ::getpid() && thread.get_id() != std::this_thread::get_id();
    has_thread ? thread.join() : thread.detach();
  }
};

namespace {

// Of the process: its end is what they have in common. Never destroyed, as it is used until then.
struct Tasks {
  std::mutex mutex;
  bool is_ending = false;
  std::vector<std::weak_ptr<void>> states;
};

Tasks& tasks() {
  static Tasks& all = *new Tasks;
  return all;
}

// exit() destroys what is local to its thread before anything static, and what is static in the
// reverse order of its making: of the thread that main() runs on nothing is gone when this one is.
struct EndOfMainThread {
  ~EndOfMainThread() {
    if (::syscall(SYS_gettid) == ::getpid()) end_background_tasks();
  }
};

// For a call of exit() from another thread: before all that is static by now.
void wait_at_exit() { std::atexit(end_background_tasks); }

}  // namespace

bool TaskEnd::is_cancelled() {
  // Before what has been made static since. Rarely, as each takes memory until the end.
  ++asked_;
  if ((asked_ & (asked_ - 1)) == 0) wait_at_exit();
  return is_cancelled_;
}

std::unique_ptr<BackgroundTask> BackgroundTask::start(std::function<void(TaskEnd& end)> work) {
  thread_local const EndOfMainThread end_of_main_thread;
  (void)end_of_main_thread;
  wait_at_exit();
  Tasks& all = tasks();
  const std::lock_guard lock(all.mutex);
  if (all.is_ending) return nullptr;
  auto state = std::make_shared<State>();
  std::erase_if(all.states, [](const std::weak_ptr<void>& known) { return known.expired(); });
  all.states.push_back(state);
  state->thread = std::thread([state, work = std::move(work)]() mutable {
    work(state->end);
    // What the work holds goes in this thread, too.
    work = {};
    state->is_done = true;
  });
  return std::unique_ptr<BackgroundTask>(new BackgroundTask(std::move(state)));
}

BackgroundTask::BackgroundTask(std::shared_ptr<State> state) : state_(std::move(state)) {}

BackgroundTask::~BackgroundTask() {
  state_->end.is_cancelled_ = true;
  state_->join();
}

bool BackgroundTask::is_done() const { return state_->is_done; }

void BackgroundTask::wait() { state_->join(); }

void end_background_tasks() {
  std::vector<std::shared_ptr<BackgroundTask::State>> running;
  {
    Tasks& all = tasks();
    const std::lock_guard lock(all.mutex);
    all.is_ending = true;
    for (const std::weak_ptr<void>& known : all.states) {
      if (auto state = known.lock()) {
        running.push_back(std::static_pointer_cast<BackgroundTask::State>(std::move(state)));
      }
    }
  }
  for (const auto& state : running) state->end.is_cancelled_ = true;
  for (const auto& state : running) state->join();
}

}  // namespace tessera
