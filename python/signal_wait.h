// Ctrl-C while a model is loaded or bound.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace tessera::python {

// Lets the main thread answer signals while another thread works for it. Python runs the handlers
// of signals on the main thread only, and the code that loads and binds may not look for signals
// for seconds.
class SignalWait {
 public:
  SignalWait();
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  // Calls `work` in another thread and waits, without the interpreter's lock, which the caller must
  // hold. Throws what `work` throws. If the handler of a signal raises an exception (by default,
  // that of Ctrl-C raises KeyboardInterrupt), is_stop_requested() becomes true, and the exception
  // is thrown when the work has ended, but after `kMaxDelay` at the latest. Then the work is left
  // to itself: it goes on until it ends, or until the process does. So `work` must own everything
  // that it uses; an owner of Python's objects must take the interpreter's lock to release them.
  //
  // On other threads than the main one, which get no signals, `work` is simply called.
  void run(std::function<void()> work);

  // This and ask() are for `work`. Whether `work` should end soon.
  bool is_stop_requested() const;
  // Calls `question` on the thread that waits, with the interpreter's lock; returns its answer. If
  // it throws an exception of Python, run() treats that like one of a signal's handler. false if a
  // stop is requested.
  bool ask(const std::function<bool()>& question);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// `work()`, which must own what it uses, while signals are answered.
template <class Work>
auto answering_signals(Work work) {
  auto result = std::make_shared<std::optional<decltype(work())>>();
  SignalWait().run([result, work = std::move(work)] { result->emplace(work()); });
  return *std::move(*result);
}

// A reference to an object of Python that may be released on any thread.
std::shared_ptr<nanobind::object> shared_reference(nanobind::object object);

}  // namespace tessera::python
