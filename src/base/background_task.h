// Work beside the caller's that ends before the process does: whoever builds or measures while
// exit() destroys what libraries keep in static memory reads what is gone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace tessera {

// What a task knows of its end. From the task's own thread.
class TaskEnd {
 public:
  // Whether nobody wants the work any more. Asked often, for example before each kernel: what the
  // work has made static until then is then destroyed only after its end.
  bool is_cancelled();

 private:
  friend class BackgroundTask;
  friend void end_background_tasks();
  std::atomic<bool> is_cancelled_ = false;
  int asked_ = 0;
};

// A thread; its owner is used by one thread at a time.
class BackgroundTask {
 public:
  // Begins `work`, which throws nothing. Null where end_background_tasks() was called.
  static std::unique_ptr<BackgroundTask> start(std::function<void(TaskEnd& end)> work);
  // Cancels the work and waits for it.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  bool is_done() const;
  void wait();

 private:
  struct State;
  explicit BackgroundTask(std::shared_ptr<State> state);
  friend void end_background_tasks();
  std::shared_ptr<State> state_;
};

// Cancels all tasks of this process and waits for them; no other begins afterwards. Called by
// itself where main() returns or exit() is called; by programs whose end begins earlier, such as
// interpreters.
void end_background_tasks();

}  // namespace tessera
