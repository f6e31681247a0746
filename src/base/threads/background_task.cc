#include "base/threads/background_task.h"

#include <link.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/fork.h"
#include "base/threads/start_thread.h"

namespace tessera {

namespace {

constexpr int kLowPriority = 10;

}  // namespace

void lower_priority() {
  // On Linux a thread has a priority of its own, and child processes inherit it.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kLowPriority);
}

struct BackgroundTask::State {
  CancellationToken end;
  std::atomic<bool> is_done = false;
  pid_t process = ::getpid();
  std::function<void()> wake;
  std::mutex mutex;  // protects `thread`
  std::thread thread;

  void cancel() {
    end.is_cancelled_ = true;
    // In a forked process, the lock that `wake` takes may be locked for ever.
    if (wake && process == ::getpid()) wake();
  }

  void join() {
    // A forked process has a copy of the object but not the thread, whose identifier may be that of
    // a new thread there. So the object is forgotten, neither joined nor detached.
    if (process != ::getpid()) {
      std::construct_at(&thread);
      return;
    }
    // Work may destroy its own task: a thread must not join itself, nor wait here for another one
    // that joins it.
    std::unique_lock lock(mutex, std::defer_lock);
    if (is_own_thread()) {
      if (lock.try_lock() && thread.joinable()) thread.detach();
      return;
    }
    lock.lock();
    if (thread.joinable()) thread.join();
  }

  bool is_own_thread() const { return of_this_thread == this; }
  static thread_local const State* of_this_thread;  // null unless a task runs there
};

thread_local const BackgroundTask::State* BackgroundTask::State::of_this_thread = nullptr;

namespace {

// All tasks of the process. Never destroyed, because exit handlers use it.
struct Tasks {
  std::mutex mutex;
  bool is_ending = false;
  std::vector<std::weak_ptr<void>> states;
  std::vector<std::unique_ptr<BackgroundTask>> left;
};

Tasks& tasks() {
  static Tasks& all = *new Tasks;
  return all;
}

// exit() destroys the thread_local objects of its thread first, then static objects in reverse
// order of their construction. So nothing is destroyed yet when the main thread destroys this
// object.
struct EndOfMainThread {
  ~EndOfMainThread() {
    if (::syscall(SYS_gettid) == ::getpid()) end_background_tasks();
  }
};

// How many libraries the process has loaded since its start.
unsigned long long loaded_libraries() {
  unsigned long long count = 0;
  const auto read = [](dl_phdr_info* info, size_t, void* target) {
    *static_cast<unsigned long long*>(target) = info->dlpi_adds;
    return 1;  // the same for each library
  };
  ::dl_iterate_phdr(read, &count);
  return count;
}

// Covers a call of exit() from another thread: the handler runs before the destructors of all
// objects that are static by now. Each registration takes memory until exit, so after many only a
// newly loaded library is a reason for another: what else is static has been made by then.
void wait_at_exit() {
  constexpr int kMostRegistrations = 1024;
  static std::atomic<int> registrations = 0;
  static std::atomic<unsigned long long> libraries = 0;
  // The system's lists of handlers and of libraries have locks that would stay held in a process
  // that is forked meanwhile.
  const NoForkSection section;
  const unsigned long long loaded = loaded_libraries();
  if (registrations >= kMostRegistrations && loaded == libraries) return;
  libraries = loaded;
  ++registrations;
  std::atexit(end_background_tasks);
}

}  // namespace

bool CancellationToken::is_cancelled() {
  // Registers the handler again, so that it runs before the destructors of newer static objects.
  ++task_count_;
  if ((task_count_ & (task_count_ - 1)) == 0) wait_at_exit();
  return is_cancelled_;
}

std::unique_ptr<BackgroundTask> BackgroundTask::start(
    std::function<void(CancellationToken& end)> work, std::function<void()> wake) {
  thread_local const EndOfMainThread kEndOfMainThread;
  (void)kEndOfMainThread;
  wait_at_exit();
  Tasks& all = tasks();
  const ForkSafeLock lock(all.mutex);
  if (all.is_ending) return nullptr;
  auto state = std::make_shared<State>();
  state->wake = std::move(wake);
  std::erase_if(all.states, [](const std::weak_ptr<void>& known) { return known.expired(); });
  state->thread = start_thread([state, work = std::move(work)]() mutable {
    State::of_this_thread = state.get();
    work(state->end);
    // Destroys what the work owns in this thread, too.
    work = {};
    state->is_done = true;
  });
  all.states.push_back(state);
  return std::unique_ptr<BackgroundTask>(new BackgroundTask(std::move(state)));
}

void BackgroundTask::leave(std::unique_ptr<BackgroundTask> task) {
  if (task == nullptr) return;
  Tasks& all = tasks();
  const ForkSafeLock lock(all.mutex);
  // Of those that have ended, the destructor waits for nothing.
  std::erase_if(all.left, [](const auto& known) { return known->is_done(); });
  all.left.push_back(std::move(task));
}

BackgroundTask::BackgroundTask(std::shared_ptr<State> state) : state_(std::move(state)) {}

BackgroundTask::~BackgroundTask() {
  state_->cancel();
  state_->join();
}

bool BackgroundTask::is_done() const { return state_->is_done; }

bool BackgroundTask::is_lost() const { return !is_done() && state_->process != ::getpid(); }

void BackgroundTask::wait() { state_->join(); }

void end_background_tasks() {
  std::vector<std::shared_ptr<BackgroundTask::State>> running;
  {
    Tasks& all = tasks();
    const ForkSafeLock lock(all.mutex);
    all.is_ending = true;
    for (const std::weak_ptr<void>& known : all.states) {
      if (auto state = known.lock()) {
        running.push_back(std::static_pointer_cast<BackgroundTask::State>(std::move(state)));
      }
    }
  }
  for (const auto& state : running) state->cancel();
  for (const auto& state : running) state->join();
}

}  // namespace tessera
