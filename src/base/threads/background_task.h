// Background work that ends before the process does. Without this, work that runs during exit()
// would read static memory of libraries after its destruction.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace tessera {

// Tells a task whether it has to stop. Called from the task's own thread.
class CancellationToken {
 public:
  // Whether the task was cancelled. Call it often, for example before each kernel: static objects
  // that the work created before the call are destroyed only after the work has ended.
  bool is_cancelled();

 private:
  friend class BackgroundTask;
  friend void end_background_tasks();
  std::atomic<bool> is_cancelled_ = false;
  int task_count_ = 0;
};

// Lets all other threads and processes of the machine precede the calling thread, and processes
// that it starts.
void lower_priority();

// Owns a thread. One thread at a time may use the owner.
class BackgroundTask {
 public:
  // Starts `work`, which must not throw. Returns null if end_background_tasks() was called before.
  // Throws OutOfMemory if the system starts no further thread.
  // `wake` is called when the task is cancelled, on the thread that cancels it, so that work that
  // waits can end; it must not throw, and may be called more than once and after the work has
  // ended.
  static std::unique_ptr<BackgroundTask> start(std::function<void(CancellationToken& end)> work,
                                               std::function<void()> wake = {});
  // Cancels the work and waits for it, unless the work itself destroys its task.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Lets the work, if there is any, go on without an owner. end_background_tasks() cancels it and
  // waits for it.
  static void leave(std::unique_ptr<BackgroundTask> task);

  bool is_done() const;
  // Whether its thread is one of the process from which this one was forked, so that it never ends.
  bool is_lost() const;
  // Returns at once if it is lost.
  void wait();

 private:
  struct State;
  explicit BackgroundTask(std::shared_ptr<State> state);
  friend void end_background_tasks();
  std::shared_ptr<State> state_;
};

// Cancels all tasks of this process and waits for them; no task starts afterwards. Called
// automatically when main() returns or exit() is called. Programs that begin to shut down earlier,
// such as interpreters, call it themselves.
void end_background_tasks();

}  // namespace tessera
