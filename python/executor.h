// The class Executor of the Python module.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::python {

// An executor that many threads may hold: the interpreter's lock is not kept while it runs, so a
// lock of its own makes them take turns.
class SharedExecutor {
 public:
  explicit SharedExecutor(Executor executor) : executor_(std::move(executor)) {
    for (const ValueDescription& input : executor_->inputs()) input_names.push_back(input.name);
  }
  // What it waits for, such as a plan that is being built, may log, and needs the lock for that.
  ~SharedExecutor() {
    if (PyGILState_Check() == 0) return;
    const nanobind::gil_scoped_release unlocked;
    executor_.reset();
  }
  SharedExecutor(const SharedExecutor&) = delete;
  SharedExecutor& operator=(const SharedExecutor&) = delete;

  // Calls `action(executor)` alone, without the interpreter's lock, which is held on entry and
  // exit.
  template <class Action>
  auto alone(const Action& action) {
    const nanobind::gil_scoped_release unlocked;
    const std::scoped_lock turn(mutex_);
    return action(*executor_);
  }
  // For what never changes after bind(): threads.
  const Executor& executor() const { return *executor_; }
  // From any thread, also while another one runs it.
  void cancel() { executor_->cancel(); }

  std::vector<std::string> input_names;
  // By name of an output, the array that it is bound to; and whether an input is bound. Need the
  // interpreter's lock.
  std::map<std::string, nanobind::object> bound_outputs;
  bool has_bound_input = false;

 private:
  std::mutex mutex_;
  std::optional<Executor> executor_;
};

using NamedTensors = std::map<std::string, AnyTensor>;

// The arrays of a dictionary. Throws InvalidArgument for a key that is no text. Needs the
// interpreter's lock.
NamedTensors by_name(nanobind::handle mapping);
// The same where all must be dense: throws InvalidArgument for one that is not.
std::map<std::string, Tensor> dense_by_name(nanobind::handle mapping);

void bind_executor(nanobind::module_& module);

}  // namespace tessera::python
