#include "python/executor.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/errors/likely_name.h"
#include "python/arrays.h"
#include "python/descriptions.h"
#include "python/interrupt.h"
#include "python/signal_wait.h"
#include "python/sparse_arrays.h"
#include "python/text.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

std::string location_of(const std::string& input) { return "input '" + input + "'"; }

// How often a thread that waits for its turn looks for signals.
constexpr std::chrono::milliseconds kTurnPoll{50};
// More values than these are only counted in a repr.
constexpr size_t kMaxValues = 6;

}  // namespace

void SharedExecutor::wait_for_turn(std::unique_lock<std::timed_mutex>& turn) {
  if (forks_at_turn_ != fork_count()) {
    throw Error(ErrorKind::Unsupported, "executor",
                "expected one that no thread used when the process was forked, found one in use; "
                "bind another one in the new process");
  }
  if (!is_main_thread()) turn.lock();
  while (!turn && !turn.try_lock_for(kTurnPoll)) {
    const Locked lock;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
}

std::string values_text(const std::vector<ValueDescription>& values) {
  std::string text;
  for (size_t index = 0; index < values.size(); ++index) {
    if (index == kMaxValues)
      return text + ", and " + std::to_string(values.size() - index) + " more";
    text += (text.empty() ? "" : ", ") + values[index].name + ": " + values[index].text;
  }
  return text;
}

namespace {

// Adds the value of an input: an array, a list of arrays, a dict, or None for an optional without
// content.
void add_input(NamedTensors& tensors, std::string input, nb::handle value,
               const NamedInputs& inputs) {
  if (value.is_none() && inputs.optionals.contains(input)) return;
  const auto map = inputs.maps.find(input);
  AnyTensor tensor = map != inputs.maps.end()
                         ? AnyTensor(to_map(value, map->second, location_of(input)))
                     : inputs.lists.contains(input) ? AnyTensor(to_list(value, location_of(input)))
                                                    : to_any_tensor(value, location_of(input));
  tensors.emplace(std::move(input), std::move(tensor));
}

}  // namespace

NamedTensors by_name(const nb::handle mapping, const NamedInputs& inputs) {
  NamedTensors tensors;
  for (const nb::handle key : nb::iter(mapping)) {
    if (!nb::isinstance<nb::str>(key)) {
      throw Error(ErrorKind::InvalidArgument, "inputs",
                  "expected the names of inputs as keys, found a key of type " +
                      nb::cast<std::string>(nb::type_name(key.type())));
    }
    std::string input;
    if (!nb::try_cast(key, input)) {
      throw Error(ErrorKind::InvalidArgument, "inputs",
                  "expected the names of inputs as keys, found text that is not Unicode: " +
                      nb::cast<std::string>(nb::steal(PyObject_ASCII(key.ptr()))));
    }
    const nb::object value = mapping[key];
    add_input(tensors, std::move(input), value, inputs);
  }
  return tensors;
}

std::map<std::string, Tensor> dense_by_name(const nb::handle mapping) {
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : by_name(mapping)) {
    if (!std::holds_alternative<Tensor>(tensor)) {
      throw Error(ErrorKind::InvalidArgument, location_of(name),
                  "expected a dense array, found a sparse one");
    }
    tensors.emplace(name, std::get<Tensor>(std::move(tensor)));
  }
  return tensors;
}

namespace {

NamedTensors in_order(const nb::args& arrays, const NamedInputs& named) {
  const std::vector<std::string>& inputs = named.names;
  if (arrays.size() != inputs.size()) {
    std::string names;
    for (const std::string& input : inputs) names += (names.empty() ? "" : ", ") + input;
    throw Error(ErrorKind::InvalidArgument, "inputs",
                "expected one array for each of " + std::to_string(inputs.size()) + " inputs (" +
                    names + "), or one dictionary of arrays by name; found " +
                    std::to_string(arrays.size()) + " arguments");
  }
  NamedTensors tensors;
  for (size_t index = 0; index < inputs.size(); ++index) {
    add_input(tensors, inputs[index], arrays[index], named);
  }
  return tensors;
}

bool is_mapping(nb::handle value) {
  // A list also implements the C slots of the mapping protocol; only mappings have keys().
  return PyDict_Check(value.ptr()) || (PyMapping_Check(value.ptr()) && nb::hasattr(value, "keys"));
}

}  // namespace

NamedTensors by_name_or_in_order(const nb::args& inputs, const NamedInputs& named_inputs) {
  if (inputs.size() == 1 && is_mapping(inputs[0])) return by_name(inputs[0], named_inputs);
  return in_order(inputs, named_inputs);
}

namespace {

// Calls `action` so that Ctrl-C cancels its run. Then it raises the exception of Python's signal
// handler, by default KeyboardInterrupt.
template <class Action>
auto interruptible(SharedExecutor& shared, const Action& action) {
  try {
    return shared.exclusively([&](Executor& executor) {
      const RunInterrupt interrupt(executor);
      return action(executor);
    });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Cancelled && PyErr_CheckSignals() != 0) {
      nb::raise_python_error();
    }
    throw;
  }
}

// The index of each of `wanted` among `names`. Throws InvalidArgument for a name that is missing.
std::vector<size_t> indices_of(const std::vector<std::string>& wanted,
                               const std::vector<std::string>& names) {
  std::vector<size_t> indices;
  for (const std::string& name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      std::string list;
      for (const std::string& known : names) list += (list.empty() ? "'" : ", '") + known + "'";
      throw Error(ErrorKind::InvalidArgument, "output '" + name + "'",
                  "the model has no such output; it has " + list + did_you_mean(name, names) +
                      "; bind(fetch=...) adds inner values");
    }
    indices.push_back(static_cast<size_t>(found - names.begin()));
  }
  return indices;
}

std::vector<std::string> output_names(const Executor& executor) {
  std::vector<std::string> names;
  for (const ValueDescription& output : executor.outputs()) names.push_back(output.name);
  return names;
}

nb::list run(SharedExecutor& shared, const nb::args& inputs,
             const std::optional<std::vector<std::string>>& outputs) {
  NamedTensors tensors;
  if (!inputs.empty() || !shared.has_bound_input) {
    tensors = by_name_or_in_order(inputs, shared.named_inputs);
  }
  std::vector<std::string> names;
  std::vector<nb::object> bound;  // by output; empty for outputs that are not bound
  std::vector<AnyTensor> results = interruptible(shared, [&](Executor& executor) {
    // A wrong name is found before the run.
    if (outputs) indices_of(*outputs, output_names(executor));
    std::vector<AnyTensor> given = executor.run_any(tensors);
    bound.resize(given.size());
    const bool has_bound_output = !shared.bound_outputs.empty();
    // The plan, and with it the outputs of steps that may be fetched, can depend on the shapes.
    if (has_bound_output || outputs) names = output_names(executor);
    // Read in the same turn as the run: afterwards, another thread may bind other arrays.
    if (has_bound_output) {
      const Locked lock;
      for (size_t index = 0; index < names.size(); ++index) {
        const auto found = shared.bound_outputs.find(names[index]);
        if (found != shared.bound_outputs.end()) bound[index] = found->second;
      }
    }
    return given;
  });
  if (!outputs) return to_any_arrays(std::move(results), bound);
  std::vector<AnyTensor> chosen;
  std::vector<nb::object> chosen_bound;
  for (const size_t index : indices_of(*outputs, names)) {
    chosen.push_back(results[index]);
    chosen_bound.push_back(bound[index]);
  }
  // Otherwise the elements would have two owners, and be copied.
  results.clear();
  return to_any_arrays(std::move(chosen), chosen_bound);
}

void bind_input(SharedExecutor& shared, const std::string& name, nb::handle array) {
  const AnyTensor memory = nb::isinstance<SparseTensor>(array)
                               ? to_any_tensor(array, location_of(name))
                               : AnyTensor(to_shared_tensor(array, location_of(name)));
  shared.exclusively([&](Executor& executor) { executor.bind_input(name, memory); });
  shared.has_bound_input = true;
}

void bind_output(SharedExecutor& shared, const std::string& name, nb::object array) {
  Tensor memory = to_writable_tensor(array, "output '" + name + "'");
  // The previous array is destroyed after the turn: that may run code which uses the executor.
  shared.exclusively([&](Executor& executor) {
    executor.bind_output(name, std::move(memory));
    const Locked lock;
    std::swap(shared.bound_outputs[name], array);
  });
}

void clear_bindings(SharedExecutor& shared) {
  std::map<std::string, nb::object> previous;  // destroyed after the turn, as in bind_output()
  shared.exclusively([&](Executor& executor) {
    executor.clear_bindings();
    const Locked lock;
    shared.bound_outputs.swap(previous);
  });
  shared.has_bound_input = false;
}

std::string executor_text(const Executor& executor) {
  return "<tessera.Executor " + values_text(executor.inputs()) + " -> " +
         values_text(executor.outputs()) + "; threads: " + std::to_string(executor.threads()) + ">";
}

// Calls `action(executor)` exclusively while signals are answered.
template <class Action>
void exclusively_answering_signals(SharedExecutor& shared, const Action& action) {
  SignalWait().run([owner = shared_reference(nb::find(shared)), &shared, action] {
    shared.exclusively_unlocked(action);
  });
}

constexpr const char* kRunText =
    R"(Runs on NumPy arrays: a dictionary by name, or one array for each of `inputs`, in order.

Returns the outputs, then the fetched values, in the order of `Executor.outputs`; or only the ones
that the argument `outputs` names, in its order. All are computed in any case. The arrays belong to
the caller; later runs do not change them, except those that were passed to bind_output().

If the model leaves shapes open, and arrays have other shapes than in the previous run, the executor
switches to these shapes. That takes microseconds if it has a plan for them, or for a family of shapes
to which they belong; otherwise it plans, but measures nothing. If bind() did not know all shapes, the
first run does what bind() does otherwise. Afterwards `inputs`,
`outputs` and plan() describe the new shapes.

An input is read in place if it is dense, row-major and starts at a multiple of 64 bytes, and copied
otherwise; element types are never converted. A dictionary need not contain inputs that nothing
reads, nor inputs that were passed to bind_input(). An input that was bound in csr accepts a
SparseArray, or a csr array of SciPy, which is copied; an output that was bound in a sparse layout
is a SparseArray.

Raises InvalidArgument if an input is missing, unknown, not of the bound type, or of a shape that
contradicts the model (or, with fixed_shapes, is not the bound shape). Thread-safe: threads take
turns. Ctrl-C cancels a run on the main thread before its next step.

    probabilities, = executor.run({"data_0": picture}))";

constexpr const char* kBindInputText =
    R"(Binds an input to `array`: all later runs read its contents at that time.

A bound input need not be passed to run(). The array must be dense and row-major. It may begin at
any multiple of the element size; if a kernel needs a larger alignment, the values are copied. Runs
do not write to it, unless the input belongs to a state pair whose output is bound to the same
memory.

    executor.bind_input("x", x)
    executor.bind_output("y", y)
    x[:] = 1
    executor.run_bound()  # y has the results)";

constexpr const char* kBindOutputText =
    R"(Binds an output or a fetched value to `array`: later runs write to it, and run() returns it.

The array must be dense, row-major and writable. A run raises InvalidArgument if the array shares
memory with another output, or if it does not have the shape of the output for the inputs of this
run. It may share memory with inputs: results are as if all inputs had been copied before the run.
Outputs that are sparse, or whose size is known only in the run, cannot be bound.)";

// Properties of the executor, copied in a turn of the calling thread.
template <auto Get>
auto in_turn(SharedExecutor& shared) {
  return shared.exclusively([](Executor& executor) { return (executor.*Get)(); });
}
template <auto Get>
nb::object described(SharedExecutor& shared) {
  return to_python(in_turn<Get>(shared));
}
template <auto Get>
nb::list listed(SharedExecutor& shared) {
  return to_list(in_turn<Get>(shared));
}

using ExecutorClass = nb::class_<SharedExecutor>;

void bind_runs(ExecutorClass& binding) {
  binding
      .def("run", &run, "inputs"_a, "outputs"_a = nb::none(),
           nb::sig("def run(self, *inputs: numpy.typing.ArrayLike | SparseArray | "
                   "collections.abc.Mapping[str, numpy.typing.ArrayLike | SparseArray], outputs: "
                   "collections.abc.Sequence[str] | None = None) -> "
                   "list[numpy.ndarray | SparseArray]"),
           kRunText)
      .def("bind_input", &bind_input, "name"_a, "array"_a,
           nb::sig("def bind_input(self, name: str, array: numpy.ndarray | SparseArray) -> None"),
           kBindInputText)
      .def("bind_output", &bind_output, "name"_a, "array"_a,
           nb::sig("def bind_output(self, name: str, array: numpy.ndarray) -> None"),
           kBindOutputText)
      .def("clear_bindings", &clear_bindings, "Removes all bindings of inputs and outputs.")
      .def(
          "run_bound",
          [](SharedExecutor& shared) {
            interruptible(shared, [](Executor& executor) { executor.run_bound(); });
          },
          "A run in which all inputs that are read and all outputs are bound; it allocates "
          "nothing.")
      .def("cancel", &SharedExecutor::cancel,
           "Cancels the current run of another thread, if there is one, before its next step: "
           "run() raises Cancelled there. The executor can run again.")
      .def(
          "set_time_limit",
          [](SharedExecutor& shared, double seconds) {
            shared.exclusively([&](Executor& executor) { executor.set_time_limit(seconds); });
          },
          "seconds"_a, "Later runs that take longer raise Cancelled; 0: no limit.")
      .def(
          "wait_for_swap",
          [](SharedExecutor& shared) {
            exclusively_answering_signals(shared,
                                          [](Executor& executor) { executor.wait_for_swap(); });
          },
          "Waits for the faster plan of bind(swap=True), if there will be one; the next run uses "
          "it.");
}

std::optional<std::string> kernel_text_of(SharedExecutor& shared, size_t step,
                                          const std::string& form) {
  const std::optional<KernelForm> wanted = kernel_form(form);
  if (!wanted) {
    throw nb::value_error(
        ("form: expected 'expression', 'source' or 'assembly', found '" + form + "'").c_str());
  }
  return shared.exclusively(
      [&](Executor& executor) { return executor.kernel_text(step, *wanted); });
}

void bind_plan(ExecutorClass& binding) {
  binding
      .def(
          "explain_unusable", &in_turn<&Executor::explain_unusable>,
          "Why later runs are not possible, because a device was lost or was opened before a fork; "
          "'' if they are.")
      .def("measure_dispatch_ns", &in_turn<&Executor::measure_dispatch_ns>,
           "The time of a step without its kernel, in nanoseconds; measures for some milliseconds.")
      .def_prop_ro(
          "inputs", &listed<&Executor::inputs>,
          nb::sig("def inputs(self) -> list[tessera.descriptions.ValueDescription]"),
          "The inputs of run(), with the shapes of the newest run, or before it the bound ones.")
      .def_prop_ro("outputs", &listed<&Executor::outputs>,
                   nb::sig("def outputs(self) -> list[tessera.descriptions.ValueDescription]"),
                   "The results of run() for these shapes: the outputs, then the fetched values.")
      .def_prop_ro(
          "threads", [](const SharedExecutor& shared) { return shared.executor().threads(); },
          "The number of threads that run() uses.")
      .def_prop_ro(
          "has_shapes", [](const SharedExecutor& shared) { return shared.executor().has_shapes(); },
          "False before the first run if bind() did not know all shapes: that run decides.")
      .def("plan", &described<&Executor::plan>,
           nb::sig("def plan(self) -> tessera.descriptions.PlanDescription"),
           "The steps of run() for the shapes of the newest run, which backend runs each, and "
           "which backends refused.")
      .def_prop_ro("compiled", &listed<&Executor::compiled>,
                   nb::sig("def compiled(self) -> list[tessera.descriptions.CompileDescription]"),
                   "The compilations of each backend of the plan in this process.")
      .def("kernel_text", &kernel_text_of, "step"_a, "form"_a = "source",
           "The code of a step of plan(): 'expression', 'source' or 'assembly'; None if its kernel "
           "was not compiled here.");
}

void bind_records(ExecutorClass& binding) {
  binding
      .def("memory", &described<&Executor::memory>,
           nb::sig("def memory(self) -> tessera.descriptions.HeldMemoryDescription"),
           "The memory of the executor, and the caches of the process with their bounds.")
      .def("shapes", &described<&Executor::shapes>,
           nb::sig("def shapes(self) -> tessera.descriptions.ShapesDescription"),
           "The sets of input shapes for which there are plans, and the arena that they share.")
      .def_prop_ro("costs", &in_turn<&Executor::costs>,
                   "All costs that bind() knew or measured, as JSON; \"\" if there are none.")
      .def_prop_ro("stages", &listed<&Executor::stages>,
                   nb::sig("def stages(self) -> list[tessera.descriptions.StageRecord]"),
                   "The stages of bind(), in order.")
      .def(
          "record_steps",
          [](SharedExecutor& shared, bool is_on) {
            shared.exclusively([&](Executor& executor) { executor.record_steps(is_on); });
          },
          "is_on"_a = true,
          "Switches recording of the steps of later runs on or off; off by default.")
      .def_prop_ro("steps", &listed<&Executor::steps>,
                   nb::sig("def steps(self) -> list[tessera.descriptions.StepRecord]"),
                   "A record for each step of the newest run that was recorded, in order.")
      .def(
          "__repr__",
          [](SharedExecutor& shared) { return decoded(shared.exclusively(executor_text)); },
          nb::sig("def __repr__(self) -> str"));
}

void bind_caches(ExecutorClass& binding) {
  binding
      .def(
          "save_cache",
          [](SharedExecutor& shared, const std::filesystem::path& filename, const std::string& type,
             bool include_packs) {
            shared.exclusively(
                [&](Executor& executor) { executor.save_cache(filename, type, include_packs); });
          },
          "filename"_a, "type"_a = "all", nb::kw_only(), "include_packs"_a = false,
          "Saves the results that bind() found or knew, as Model.save_cache() does.")
      .def(
          "load_cache",
          [](SharedExecutor& shared, const std::filesystem::path& filename,
             const std::string& type) {
            exclusively_answering_signals(shared, [filename, type](Executor& executor) {
              executor.load_cache(filename, type);
            });
          },
          "filename"_a, "type"_a = "all",
          "Plans again with the contents of a file, and measures what is missing; raises as "
          "Model.load_cache() does.")
      .def("cache_report", &described<&Executor::cache_report>,
           nb::sig("def cache_report(self) -> tessera.descriptions.CacheReport"),
           "Where the current plan was found, what caches knew, and what was measured.");
}

}  // namespace

void bind_executor(nb::module_& module) {
  ExecutorClass binding(module, "Executor",
                        "A model bound to shapes, ready to run. Created by Model.bind().");
  bind_runs(binding);
  bind_plan(binding);
  bind_records(binding);
  bind_caches(binding);
}

}  // namespace tessera::python
