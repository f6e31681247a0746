#include "python/signal_wait.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/threads/background_task.h"
#include "python/interpreter_lock.h"
#include "python/interrupt.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

using Clock = std::chrono::steady_clock;

// How often the main thread looks for signals.
constexpr std::chrono::milliseconds kMainPoll{50};
// The longest time that work may go on after a request to stop, before it is left to itself.
constexpr std::chrono::milliseconds kMaxDelay{250};

// Null if the system starts no further thread.
std::unique_ptr<BackgroundTask> start_or_null(std::function<void(CancellationToken& end)> work) {
  try {
    return BackgroundTask::start(std::move(work));
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

struct SignalWait::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_waited_for = false;  // by the main thread, which answers questions
  bool is_stop_requested = false;
  bool is_done = false;
  std::exception_ptr failure;
  const std::function<bool()>* question = nullptr;
  std::optional<bool> answer;
  // The exception that a handler or a question raised. Requires the interpreter's lock.
  std::optional<nb::python_error> raised;

  // Waits for an end, a question, or a moment. Without the interpreter's lock, so that a handler of
  // another library that needs it can run.
  void wait_a_moment() {
    const Unlocked unlocked;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kMainPoll, [&] { return is_done || question != nullptr; });
  }

  // Requires the interpreter's lock.
  bool call(const std::function<bool()>& asked) {
    try {
      return asked();
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      request_stop();
      return false;
    }
  }

  // Requires the interpreter's lock, and that the mutex is free: the question may take long, and
  // the one who asks waits for it.
  void answer_question() {
    const std::function<bool()>* asked = nullptr;
    {
      const std::scoped_lock lock(mutex);
      asked = std::exchange(question, nullptr);
    }
    if (asked == nullptr) return;
    const bool given = call(*asked);
    const std::scoped_lock lock(mutex);
    answer = given;
    changed.notify_all();
  }

  void request_stop() {
    const std::scoped_lock lock(mutex);
    is_stop_requested = true;
    changed.notify_all();
  }

  // Requires the interpreter's lock.
  void check_signals() {
    if (PyErr_CheckSignals() == 0) return;
    raised.emplace();
    request_stop();
  }

  // Requires the interpreter's lock.
  void raise() {
    if (!raised) return;
    nb::python_error error = *std::move(raised);
    raised.reset();
    throw nb::python_error(std::move(error));
  }

  void run(std::function<void()>& work) {
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    // The objects that the work owns are released before its end is reported.
    work = {};
    const std::scoped_lock lock(mutex);
    failure = std::move(error);
    is_done = true;
    changed.notify_all();
  }

  bool has_ended() {
    const std::scoped_lock lock(mutex);
    return is_done;
  }
};

SignalWait::SignalWait() : state_(std::make_shared<State>()) {}
SignalWait::~SignalWait() = default;

void SignalWait::run(std::function<void()> work) {
  std::unique_ptr<BackgroundTask> task;
  if (is_main_thread()) {
    state_->is_waited_for = true;
    // The task gets a copy: if no thread can be started, `work` is called here.
    task = start_or_null(
        [state = state_, work](CancellationToken& /*end*/) mutable { state->run(work); });
  }
  if (task == nullptr) {
    state_->is_waited_for = false;
    {
      const Unlocked unlocked;
      work();
    }
    state_->raise();
    return;
  }
  work = {};
  std::optional<Clock::time_point> latest;
  while (true) {
    state_->wait_a_moment();
    state_->answer_question();
    if (state_->has_ended()) break;
    if (!state_->raised) state_->check_signals();
    if (!state_->raised) continue;
    if (!latest) latest = Clock::now() + kMaxDelay;
    if (Clock::now() < *latest) continue;
    BackgroundTask::leave(std::move(task));
    state_->raise();
  }
  {
    const Unlocked unlocked;
    task.reset();
  }
  state_->check_signals();
  state_->raise();
  if (state_->failure) std::rethrow_exception(std::exchange(state_->failure, nullptr));
}

bool SignalWait::is_stop_requested() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->is_stop_requested;
}

bool SignalWait::ask(const std::function<bool()>& question) {
  std::unique_lock lock(state_->mutex);
  if (state_->is_stop_requested) return false;
  if (!state_->is_waited_for) {
    lock.unlock();
    const Locked held;
    return state_->call(question);
  }
  state_->answer.reset();
  state_->question = &question;
  state_->changed.notify_all();
  state_->changed.wait(lock,
                       [&] { return state_->answer.has_value() || state_->is_stop_requested; });
  // Nobody calls the question later: the waiting thread has taken it, or it is withdrawn here.
  const bool is_taken = std::exchange(state_->question, nullptr) == nullptr;
  if (is_taken && !state_->answer) {
    state_->changed.wait(lock, [&] { return state_->answer.has_value(); });
  }
  return state_->answer.value_or(false);
}

std::shared_ptr<nb::object> shared_reference(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            const Locked lock;
            delete held;
          }};
}

}  // namespace tessera::python
