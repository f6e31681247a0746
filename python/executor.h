// The class Executor of the Python module.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "python/interpreter_lock.h"
#include "python/interrupt.h"
#include "tessera/tessera.h"

namespace tessera::python {

// The inputs of a model, in their order.
struct NamedInputs {
  NamedInputs() = default;
  explicit NamedInputs(const std::vector<ValueDescription>& inputs) {
    for (const ValueDescription& input : inputs) {
      names.push_back(input.name);
      if (input.type == DataType::Sequence) lists.insert(input.name);
      if (input.type == DataType::Map) maps.emplace(input.name, input.text);
      if (input.text.starts_with("optional(")) optionals.insert(input.name);
    }
  }

  std::vector<std::string> names;
  std::set<std::string> lists;              // those that take lists of arrays
  std::map<std::string, std::string> maps;  // those that take dicts, and their types
  std::set<std::string> optionals;          // those that take None, too
};

// An executor that several threads may use. The interpreter's lock is released during a run, so a
// mutex makes the threads take turns.
class SharedExecutor {
 public:
  explicit SharedExecutor(Executor executor) : executor_(std::move(executor)) {
    named_inputs = NamedInputs(executor_->inputs());
  }
  // The destructor may wait, for example for a plan that is being built. That work may write to the
  // log, which needs the interpreter's lock.
  ~SharedExecutor() {
    if (!has_interpreter_lock()) return;
    const Unlocked unlocked;
    executor_.reset();
  }
  SharedExecutor(const SharedExecutor&) = delete;
  SharedExecutor& operator=(const SharedExecutor&) = delete;

  // Calls `action(executor)` exclusively. The interpreter's lock must be held; it is released
  // during the call. While another thread has its turn, signals are answered.
  template <class Action>
  auto exclusively(const Action& action) {
    const Unlocked unlocked;
    return exclusively_unlocked(action);
  }
  // Same as exclusively(), but the interpreter's lock must not be held.
  template <class Action>
  auto exclusively_unlocked(const Action& action) {
    std::unique_lock turn(mutex_, std::try_to_lock);
    if (!turn) wait_for_turn(turn);
    forks_at_turn_ = fork_count();
    return action(*executor_);
  }
  // To be used only for properties that never change after bind(), such as the number of threads.
  const Executor& executor() const { return *executor_; }
  // May be called from any thread, also during a run.
  void cancel() { executor_->cancel(); }

  NamedInputs named_inputs;
  // The arrays to which outputs are bound, by name. Changes with the executor's bindings, in one
  // turn (exclusively()); copying or destroying an array also requires the interpreter's lock.
  std::map<std::string, nanobind::object> bound_outputs;
  // Whether any input is bound. Requires the interpreter's lock.
  bool has_bound_input = false;

 private:
  // Throws Unsupported if the process was forked during the turn of a thread, which does not exist
  // here.
  void wait_for_turn(std::unique_lock<std::timed_mutex>& turn);

  std::timed_mutex mutex_;
  std::atomic<int> forks_at_turn_ = fork_count();
  std::optional<Executor> executor_;
};

// "x: float32 1x3, mask: int64 1x8" of inputs or outputs; only the first of many.
std::string values_text(const std::vector<ValueDescription>& values);

using NamedTensors = std::map<std::string, AnyTensor>;

// Converts a dictionary of arrays. Throws InvalidArgument if a key is not a string. Requires the
// interpreter's lock.
NamedTensors by_name(nanobind::handle mapping, const NamedInputs& inputs = {});
// Converts the arguments of run(): a dictionary, or one array for each of `named_inputs`, in order.
// Throws InvalidArgument if there are more or fewer arrays. Requires the interpreter's lock.
NamedTensors by_name_or_in_order(const nanobind::args& inputs, const NamedInputs& named_inputs);
// Same as by_name(), for dense arrays only. Throws InvalidArgument if an array is sparse.
std::map<std::string, Tensor> dense_by_name(nanobind::handle mapping);

void bind_executor(nanobind::module_& module);

}  // namespace tessera::python
