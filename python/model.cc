#include "python/model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/descriptions.h"
#include "python/executor.h"
#include "python/interrupt.h"
#include "tessera/tessera.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Layouts = std::map<std::string, std::string>;

// Python callables for both logs of LoadOptions. An exception cannot pass through the C++ code that
// logs, so it is stored, and raised when the call that logged has returned.
class PythonLog {
 public:
  PythonLog(nb::callable warn, nb::callable inform)
      : warn_(std::move(warn)), inform_(std::move(inform)) {}
  PythonLog(const PythonLog&) = delete;
  PythonLog& operator=(const PythonLog&) = delete;
  ~PythonLog() {
    // The last owner may be an executor that is destroyed on a thread of its own.
    const nb::gil_scoped_acquire lock;
    clear();
    error_.reset();
  }

  void warn(const std::string& message) { call(warn_, message); }
  void inform(const std::string& message) { call(inform_, message); }

  std::array<nb::handle, 2> callables() const { return {warn_, inform_}; }
  // Releases the callables; later messages are dropped. Requires the interpreter's lock.
  void clear() {
    warn_.reset();
    inform_.reset();
  }

  // Requires the interpreter's lock.
  void raise_error() {
    if (!error_) return;
    nb::python_error error = std::move(*error_);
    error_.reset();
    throw nb::python_error(std::move(error));
  }

 private:
  void call(const nb::callable& callable, const std::string& message) {
    const nb::gil_scoped_acquire lock;
    if (error_ || !callable.is_valid()) return;
    try {
      callable(message);
    } catch (nb::python_error& error) {
      error_.emplace(std::move(error));
    }
  }

  nb::callable warn_;
  nb::callable inform_;
  std::optional<nb::python_error> error_;
};

struct LoadedModel {
  Model model;
  std::shared_ptr<PythonLog> log;
  std::optional<ModelDescription> description;  // computed on first use
};

// `source` is the first argument of tessera::load(): a path, or ModelBytes.
template <typename Source>
LoadedModel load_from(Source source, bool is_strict, bool keeps_all_values,
                      const Backends& backends, nb::callable warn, nb::callable inform, int threads,
                      bool copies_weights, bool strict_stamps) {
  auto log = std::make_shared<PythonLog>(std::move(warn), std::move(inform));
  std::optional<Model> model;
  {
    const nb::gil_scoped_release unlocked;
    model = load(std::move(source),
                 {.is_strict = is_strict,
                  .keeps_all_values = keeps_all_values,
                  .log = [log](const std::string& text) { log->warn(text); },
                  .information_log = [log](const std::string& text) { log->inform(text); },
                  .backends = backends,
                  .threads = threads,
                  .strict_stamps = strict_stamps,
                  .copies_weights = copies_weights});
  }
  log->raise_error();
  return {*std::move(model), std::move(log), std::nullopt};
}

LoadedModel load_bytes(const nb::bytes& bytes, bool is_strict, bool keeps_all_values,
                       const Backends& backends, nb::callable warn, nb::callable inform,
                       int threads, bool copies_weights, bool strict_stamps) {
  return load_from(ModelBytes{.bytes = {bytes.c_str(), bytes.size()}}, is_strict, keeps_all_values,
                   backends, std::move(warn), std::move(inform), threads, copies_weights,
                   strict_stamps);
}

// A log is often a method of the object that owns the model. The garbage collector needs to see
// this cycle to break it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::handle callable : nb::inst_ptr<LoadedModel>(self)->log->callables()) {
    Py_VISIT(callable.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<LoadedModel>(self)->log->clear();
  return 0;
}

PyType_Slot kModelSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                             {0, nullptr}};

Precision precision_named(const std::string& text) {
  if (text == name(DataType::Float32)) return Precision::Float32;
  if (text == name(DataType::BFloat16)) return Precision::BFloat16;
  throw Error(ErrorKind::InvalidArgument, "precision",
              "expected 'float32' or 'bfloat16', found '" + text + "'");
}

NanMode nan_mode_named(const std::string& text) {
  if (text == "exact") return NanMode::Exact;
  if (text == "fast") return NanMode::Fast;
  throw Error(ErrorKind::InvalidArgument, "nan",
              "expected 'exact' or 'fast', found '" + text + "'");
}

// Reports progress to a Python callable, or to nothing if it is None. If the callable raises an
// exception or returns False, or if a signal arrives, tuning ends. raise_error() raises the
// exception after bind() has returned.
class PythonProgress {
 public:
  explicit PythonProgress(nb::object callable) : callable_(std::move(callable)) {}

  std::function<bool(const TuneProgress&)> watcher() {
    return [this](const TuneProgress& progress) { return call(progress); };
  }

  void raise_error() {
    if (error_) throw nb::python_error(std::move(*error_));
  }

 private:
  bool call(const TuneProgress& progress) {
    const nb::gil_scoped_acquire lock;
    if (error_) return false;
    try {
      // Python's handler for Ctrl-C runs only if this code checks for signals.
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      if (signals_.is_stop_requested()) return false;
      if (callable_.is_none()) return true;
      const nb::object answer = callable_(to_python(progress));
      return answer.is_none() || nb::cast<bool>(nb::bool_(answer));
    } catch (nb::python_error& error) {
      error_.emplace(std::move(error));
      return false;
    }
  }

  nb::object callable_;
  BindSignals signals_;
  std::optional<nb::python_error> error_;
};

std::vector<StatePair> pairs_of(const std::vector<std::pair<std::string, std::string>>& names) {
  std::vector<StatePair> pairs;
  for (const auto& [input, output] : names) pairs.push_back({input, output});
  return pairs;
}

SharedExecutor* bind(LoadedModel& self, const std::optional<Shapes>& shapes,
                     std::vector<std::string> fetch, int threads, std::string device,
                     std::vector<std::string> backends, std::vector<Exclusion> exclude,
                     std::vector<Pin> pins, const std::string& precision, bool fetches_step_outputs,
                     std::optional<bool> optimize, std::filesystem::path cost_table,
                     const nb::object& tuning_inputs, double candidate_timeout_seconds,
                     bool in_process, nb::object on_progress, const std::optional<Layouts>& layouts,
                     bool strict_storage, double margin_search_seconds, double tune_budget_seconds,
                     bool tune_all, std::filesystem::path cache_dir, bool frozen, bool retune,
                     double solve_budget_seconds,
                     const std::vector<std::pair<std::string, std::string>>& state_pairs,
                     bool keeps_denormals, int64_t memory_budget_bytes, bool fixed_shapes,
                     int most_shapes, std::string optimize_for, bool swap, const std::string& nan) {
  PythonProgress progress(std::move(on_progress));
  const BindOptions options{.shapes = shapes.value_or(Shapes()),
                            .fetch = std::move(fetch),
                            .threads = threads,
                            .device = std::move(device),
                            .backends = std::move(backends),
                            .exclusions = std::move(exclude),
                            .pins = std::move(pins),
                            .precision = precision_named(precision),
                            .nan = nan_mode_named(nan),
                            .fetches_step_outputs = fetches_step_outputs,
                            .layouts = layouts.value_or(Layouts()),
                            .state_pairs = pairs_of(state_pairs),
                            .keeps_denormals = keeps_denormals,
                            .strict_storage = strict_storage,
                            .memory_budget_bytes = memory_budget_bytes,
                            .optimize = optimize,
                            .optimize_for = std::move(optimize_for),
                            .cache_dir = std::move(cache_dir),
                            .frozen = frozen,
                            .retune = retune,
                            .cost_table = std::move(cost_table),
                            .tuning_inputs = dense_by_name(tuning_inputs),
                            .tune_all = tune_all,
                            .tune_budget_seconds = tune_budget_seconds,
                            .solve_budget_seconds = solve_budget_seconds,
                            .swap = swap,
                            .candidate_timeout_seconds = candidate_timeout_seconds,
                            .in_process = in_process,
                            .margin_search_seconds = margin_search_seconds,
                            .fixed_shapes = fixed_shapes,
                            .most_shapes = most_shapes,
                            .on_progress = progress.watcher()};
  std::unique_ptr<SharedExecutor> executor;
  {
    const nb::gil_scoped_release unlocked;
    executor = std::make_unique<SharedExecutor>(self.model.bind(options));
  }
  progress.raise_error();
  self.log->raise_error();
  return executor.release();
}

const ModelDescription& description_of(LoadedModel& self) {
  if (!self.description) self.description = self.model.describe();
  return *self.description;
}

nb::object describe(LoadedModel& self, const std::optional<Shapes>& shapes) {
  if (!shapes) return to_python(description_of(self));
  std::optional<ModelDescription> description;
  {
    const nb::gil_scoped_release unlocked;
    description = self.model.describe(*shapes);
  }
  self.log->raise_error();
  return to_python(*description);
}

std::string text(LoadedModel& self) {
  const ModelDescription& description = description_of(self);
  std::string values;
  for (const ValueDescription& input : description.inputs) {
    values += (values.empty() ? "" : ", ") + input.name + ": " + input.text;
  }
  return "<tessera.Model '" + description.file + "', " + std::to_string(description.nodes.size()) +
         " nodes, " + values + ">";
}

constexpr const char* kBindText =
    R"(Plans for the given shapes and returns an Executor.

shapes: the shapes of inputs, by name; needed if the model leaves dimensions open.
fetch: names of inner values to return after the outputs.
threads: 0 means all cores that the process may use.
device: where to run; only "cpu" so far.
backends: names of the backends to use, best first; the reference is always last. Empty:
    TESSERA_BACKENDS of the environment, else all.
exclude: Exclusion objects, each of which forbids a backend for nodes.
pins: Pin objects, each of which forces nodes to run on a backend.
precision: the minimum precision of float32 arithmetic: "float32" or "bfloat16".
nan: "exact": NaN stays NaN; if the definition of an op gives an infinity, no kernel returns a
    finite number; and other elements are not affected (except within a tile of Winograd's
    convolutions). "fast": kernels that may lose NaN or infinities are allowed too, such as a Relu
    that returns 0 for NaN.
fetch_step_outputs: return every output of every step after `fetch`.
optimize: True: check the candidates that could win against the reference, time them alone and in
    the whole plan, and choose the fastest plan. All models on the same Backends share the
    measurements, and Executor.costs returns them. False: measure, read and write nothing. None:
    True unless TESSERA_OPTIMIZE=0 is in the environment or there is a cost_table.
optimize_for: with costs, what the choice minimises: "latency", the time of a run; "N-runs", the
    time of a process that builds the chosen kernels and runs N times; "start" means "1-runs".
swap: if a cache has the plan and its kernels are slow to build: begin with a plan that starts
    sooner, build the faster plan in the background after the first run, and switch to it between
    two runs. Outputs then differ as much as those of different kernels. False: all outputs are
    equal to the bit.
cost_table: a file with the text of Executor.costs, by which to choose.
tuning_inputs: arrays by name with which candidates are checked; random if not given.
candidate_timeout_seconds: a candidate that needs longer for a run is not used. Building one may
    take a minute, or three times as long as its backend announces.
in_process: measure in this process; otherwise in a worker process, if it can be started.
on_progress: called with a TuneProgress when a phase begins and often while measuring. If it returns
    False, measuring stops, and the results so far are used. `total` is 0 and `seconds_left` is None
    if they are not known.
layouts: of inputs and outputs, by name: "row_major" (the default), "csr" or "row_sparse". A sparse
    layout may be followed by ":<capacity>", the number of elements or rows that it can store; the
    default is a tenth of all.
strict_storage: a sparse value that a kernel accepts only dense is an error; otherwise it is
    converted, with one warning in the log.
margin_search_seconds: with costs, how long to compute the margins of candidates
    (CandidateDescription.behind_seconds).
tune_budget_seconds: maximum time for measuring, including the building of kernels; then the results
    so far decide. 0: no limit, except for graphs that take less than a millisecond.
tune_all: measure all candidates, including those that could not win.
cache_dir: with optimize, the folder in which to look for and keep what was found out; "" means
    TESSERA_CACHE_DIR of the environment, else the working folder. The user's folder is the second
    one.
frozen: with optimize, raise CacheMiss instead of measuring, and write nothing.
retune: with optimize, also measure what caches know, and replace it there.
solve_budget_seconds: maximum time of one search for the cheapest placement; then the best that was
    found is chosen, and plan().placement.gap says how far it may be from the optimum. 0: no limit.
state_pairs: pairs of the names of an input and an output which bind_input() and bind_output() may
    bind to the same memory: the state that a network keeps from run to run. The output is written
    over the input when nothing reads the input any more.
keep_denormals: compute with denormals (numbers too small for a normal exponent) as IEEE 754 says;
    otherwise all threads read and write them as zero while kernels run.
memory_budget_bytes: maximum of MemoryDescription.total_bytes, for each plan if there are several
    for several shapes; slower kernels that need less memory replace faster ones. 0: no limit.
fixed_shapes: run only on inputs of these shapes; others raise InvalidArgument.
most_shapes: the number of sets of input shapes for which plans are kept.

Raises InvalidArgument (an unknown name, a shape that contradicts the model, a dimension that is
still open), InvalidModel (shapes that do not match each other) or OutOfMemory (the machine does not
have enough memory, which is checked before anything is allocated; or no plan fits into
memory_budget_bytes).

    pins = [tessera.Pin("conv1", "reference")]
    executor = model.bind({"tokens": (1, 128)}, threads=2, pins=pins))";

constexpr const char* kSaveCacheText =
    R"(Saves what the newest bind() with optimize found out in a file.

type: "all", "plan", or a backend's name or alias. In a file with the same fingerprint, only this
    type is replaced.
include_packs: also save the packed weights, which only this user with the same processor can use.

Raises InvalidArgument (an unknown type; nothing was bound with optimize), Unsupported (a backend
that this machine does not have) or DeviceFailed.

    model.save_cache("resnet50.cache"))";

constexpr const char* kLoadCacheText =
    R"(Loads a cache file for later binds; the contents of several files add up.

Raises as save_cache() does, InvalidArgument if the file is missing or does not fit (saying what
differs), and Corrupt; then nothing has changed.

    model.load_cache("resnet50.cache", type="onednn"))";

constexpr const char* kBindSignature =
    "def bind(self, shapes: collections.abc.Mapping[str, collections.abc.Sequence[int]] | None = "
    "None, *, fetch: collections.abc.Sequence[str] = (), threads: int = 0, device: str = 'cpu', "
    "backends: collections.abc.Sequence[str] = (), exclude: collections.abc.Sequence[Exclusion] = "
    "(), pins: collections.abc.Sequence[Pin] = (), precision: str = 'float32', "
    "fetch_step_outputs: bool = False, optimize: bool | None = None, cost_table: str | os.PathLike "
    "= '', "
    "tuning_inputs: collections.abc.Mapping[str, numpy.typing.ArrayLike] = {}, "
    "candidate_timeout_seconds: float = 10.0, in_process: bool = False, on_progress: "
    "collections.abc.Callable[[tessera.descriptions.TuneProgress], object] | None = None, "
    "layouts: collections.abc.Mapping[str, str] | None = None, strict_storage: bool = False, "
    "margin_search_seconds: float = 0.0, tune_budget_seconds: float = 0.0, "
    "tune_all: bool = False, cache_dir: str | os.PathLike = '', frozen: bool = False, "
    "retune: bool = False, solve_budget_seconds: float = 0.0, "
    "state_pairs: collections.abc.Sequence[tuple[str, str]] = (), "
    "keep_denormals: bool = False, memory_budget_bytes: int = 0, fixed_shapes: bool = False, "
    "most_shapes: int = 8, optimize_for: str = 'latency', swap: bool = True, "
    "nan: str = 'exact') -> Executor";

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<LoadedModel>(module, "Model", nb::type_slots(kModelSlots),
                          "A loaded model. Created by tessera.load().")
      .def("bind", &bind, "shapes"_a = nb::none(), nb::kw_only(), "fetch"_a = nb::tuple(),
           "threads"_a = 0, "device"_a = "cpu", "backends"_a = nb::tuple(),
           "exclude"_a = nb::tuple(), "pins"_a = nb::tuple(), "precision"_a = "float32",
           "fetch_step_outputs"_a = false, "optimize"_a = nb::none(), "cost_table"_a = "",
           "tuning_inputs"_a = nb::dict(), "candidate_timeout_seconds"_a = 10.0,
           "in_process"_a = false, "on_progress"_a = nb::none(), "layouts"_a = nb::none(),
           "strict_storage"_a = false, "margin_search_seconds"_a = 0.0,
           "tune_budget_seconds"_a = 0.0, "tune_all"_a = false, "cache_dir"_a = "",
           "frozen"_a = false, "retune"_a = false, "solve_budget_seconds"_a = 0.0,
           "state_pairs"_a = nb::tuple(), "keep_denormals"_a = false, "memory_budget_bytes"_a = 0,
           "fixed_shapes"_a = false, "most_shapes"_a = 8, "optimize_for"_a = "latency",
           "swap"_a = true, "nan"_a = "exact", nb::sig(kBindSignature), kBindText)
      .def(
          "save_cache",
          [](LoadedModel& self, const std::filesystem::path& filename, const std::string& type,
             bool include_packs) {
            const nb::gil_scoped_release unlocked;
            self.model.save_cache(filename, type, include_packs);
          },
          "filename"_a, "type"_a = "all", nb::kw_only(), "include_packs"_a = false, kSaveCacheText)
      .def(
          "load_cache",
          [](LoadedModel& self, const std::filesystem::path& filename, const std::string& type) {
            const nb::gil_scoped_release unlocked;
            self.model.load_cache(filename, type);
          },
          "filename"_a, "type"_a = "all", kLoadCacheText)
      .def(
          "cache_report", [](LoadedModel& self) { return to_python(self.model.cache_report()); },
          nb::sig("def cache_report(self) -> tessera.descriptions.CacheReport"),
          "What the newest bind() with optimize loaded from caches.")
      .def("describe", &describe, "shapes"_a = nb::none(),
           nb::sig("def describe(self, shapes: collections.abc.Mapping[str, "
                   "collections.abc.Sequence[int]] | None = None) -> "
                   "tessera.descriptions.ModelDescription"),
           "Nodes, weights and sizes; with `shapes`, those of the model bound to these shapes.")
      .def_prop_ro(
          "inputs", [](LoadedModel& self) { return to_list(description_of(self).inputs); },
          nb::sig("def inputs(self) -> list[tessera.descriptions.ValueDescription]"),
          "The inputs of the model, without those that have a value in its file.")
      .def_prop_ro(
          "outputs", [](LoadedModel& self) { return to_list(description_of(self).outputs); },
          nb::sig("def outputs(self) -> list[tessera.descriptions.ValueDescription]"),
          "The outputs of the model.")
      .def_prop_ro(
          "stages", [](const LoadedModel& self) { return to_list(self.model.stages()); },
          nb::sig("def stages(self) -> list[tessera.descriptions.StageRecord]"),
          "The stages of load(), in order.")
      .def("__repr__", &text);
  constexpr const char* kLoad = "tessera.load() with every argument given.";
  // The first overload that fits is used. Bytes come first, because they also convert to a path.
  module.def("load", &load_bytes, "model"_a, nb::kw_only(), "strict"_a, "keep_all_values"_a,
             "backends"_a, "log"_a, "information_log"_a, "threads"_a, "copies_weights"_a,
             "strict_stamps"_a, kLoad);
  module.def("load", &load_from<std::filesystem::path>, "model"_a, nb::kw_only(), "strict"_a,
             "keep_all_values"_a, "backends"_a, "log"_a, "information_log"_a, "threads"_a,
             "copies_weights"_a, "strict_stamps"_a, kLoad);
}

}  // namespace tessera::python
