#include "python/model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "python/bind_options.h"
#include "python/descriptions.h"
#include "python/executor.h"
#include "python/interpreter_lock.h"
#include "python/interrupt.h"
#include "python/signal_wait.h"
#include "python/text.h"
#include "tessera/inspect.h"
#include "tessera/tessera.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

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
    const Locked lock;
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
    const Locked lock;
    if (error_ || !callable.is_valid()) return;
    try {
      callable(decoded(message));
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
  // The arguments with which tessera/copies.py loads the model again; None if it cannot.
  nb::object origin = {};
  std::optional<ModelDescription> description = {};  // computed on first use
};

// `source` is the first argument of tessera::load(): a path, or ModelBytes.
template <typename Source>
LoadedModel load_from(Source source, bool is_strict, bool keeps_all_values,
                      const Backends& backends, nb::callable warn, nb::callable inform, int threads,
                      bool copies_weights, bool strict_stamps, std::set<std::string> free_inputs,
                      nb::object origin) {
  auto log = std::make_shared<PythonLog>(std::move(warn), std::move(inform));
  LoadOptions options{.is_strict = is_strict,
                      .keeps_all_values = keeps_all_values,
                      .log = [log](const std::string& text) { log->warn(text); },
                      .information_log = [log](const std::string& text) { log->inform(text); },
                      .backends = backends,
                      .threads = threads,
                      .strict_stamps = strict_stamps,
                      .copies_weights = copies_weights,
                      .free_inputs = std::move(free_inputs)};
  auto given = std::make_shared<Source>(std::move(source));
  Model model = answering_signals(
      [given, options = std::move(options)] { return load(std::move(*given), options); });
  log->raise_error();
  return {std::move(model), std::move(log), std::move(origin)};
}

// Copies the memory of an object with the buffer protocol.
std::string bytes_of(nb::handle buffer) {
  Py_buffer view{};
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  std::string bytes;
  {
    const Unlocked unlocked;
    bytes.assign(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
  }
  PyBuffer_Release(&view);
  return bytes;
}

LoadedModel load_bytes(nb::handle model, std::string name, std::filesystem::path folder,
                       bool is_strict, bool keeps_all_values, const Backends& backends,
                       nb::callable warn, nb::callable inform, int threads, bool copies_weights,
                       bool strict_stamps, std::set<std::string> free_inputs, nb::object origin) {
  return load_from(
      ModelBytes{.bytes = bytes_of(model), .name = std::move(name), .folder = std::move(folder)},
      is_strict, keeps_all_values, backends, std::move(warn), std::move(inform), threads,
      copies_weights, strict_stamps, std::move(free_inputs), std::move(origin));
}

// `source` is the first argument of tessera::inspect(): a path, or ModelBytes.
template <typename Source>
nb::object inspect_from(Source source, bool is_strict, const Backends& backends,
                        nb::callable warn) {
  const auto log = std::make_shared<PythonLog>(std::move(warn), nb::callable());
  LoadOptions options{.is_strict = is_strict,
                      .log = [log](const std::string& text) { log->warn(text); },
                      .backends = backends};
  auto given = std::make_shared<Source>(std::move(source));
  const ModelInspection inspection = answering_signals(
      [given, options = std::move(options)] { return inspect(std::move(*given), options); });
  log->raise_error();
  return to_python(inspection);
}

nb::object inspect_bytes(nb::handle model, std::string name, std::filesystem::path folder,
                         bool is_strict, const Backends& backends, nb::callable warn) {
  return inspect_from(
      ModelBytes{.bytes = bytes_of(model), .name = std::move(name), .folder = std::move(folder)},
      is_strict, backends, std::move(warn));
}

// A log is often a method of the object that owns the model. The garbage collector needs to see
// this cycle to break it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::handle callable : nb::inst_ptr<LoadedModel>(self)->log->callables()) {
    Py_VISIT(callable.ptr());
  }
  Py_VISIT(nb::inst_ptr<LoadedModel>(self)->origin.ptr());
  return 0;
}

int clear_model(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<LoadedModel>(self)->log->clear();
  nb::inst_ptr<LoadedModel>(self)->origin.reset();
  return 0;
}

PyType_Slot kModelSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear_model)},
                             {0, nullptr}};

// Reports progress to a Python callable, or to nothing if it is None. If the callable raises an
// exception or returns False, or if a signal arrives, tuning ends.
class PythonProgress {
 public:
  explicit PythonProgress(nb::object callable)
      : is_wanted_(!callable.is_none()), callable_(std::move(callable)) {}

  SignalWait& wait() { return wait_; }

  bool call(const TuneProgress& progress) {
    if (wait_.is_stop_requested() || BindSignals::is_stop_requested()) return false;
    return !is_wanted_ || wait_.ask([&] { return answer(progress); });
  }
  // Releases the callable; later calls report to nothing. Requires the interpreter's lock.
  void end() { callable_.reset(); }

 private:
  bool answer(const TuneProgress& progress) {
    if (!callable_.is_valid()) return true;
    const nb::object given = callable_(to_python(progress));
    return given.is_none() || nb::cast<bool>(nb::bool_(given));
  }

  bool is_wanted_;
  nb::object callable_;  // only touched with the interpreter's lock
  SignalWait wait_;
};

// Releases the callable at the end of the call, even if the bind goes on after Ctrl-C.
struct EndOfProgress {
  PythonProgress& progress;
  ~EndOfProgress() { progress.end(); }
};

using BindAction = std::function<void(const Model& model, const std::vector<BindOptions>& options)>;

// Calls `action` with options for each of `shapes`, while signals are answered.
void with_options(const LoadedModel& loaded, const std::vector<nb::object>& shapes,
                  const nb::kwargs& keywords, BindAction action) {
  const auto progress = std::make_shared<PythonProgress>(
      keywords.contains("on_progress") ? nb::object(keywords["on_progress"]) : nb::none());
  const EndOfProgress end{*progress};
  std::vector<BindOptions> options;
  for (const nb::object& one : shapes) {
    options.push_back(read_bind_options(one, keywords));
    options.back().on_progress = [progress](const TuneProgress& told) {
      return progress->call(told);
    };
  }
  const BindSignals signals;
  progress->wait().run([owner = shared_reference(nb::find(loaded)), &loaded,
                        action = std::move(action), options] { action(loaded.model, options); });
  loaded.log->raise_error();
}

nb::object bind(LoadedModel& self, const nb::object& shapes, const nb::kwargs& keywords) {
  auto executor = std::make_shared<std::unique_ptr<SharedExecutor>>();
  with_options(self, {shapes}, keywords,
               [executor](const Model& model, const std::vector<BindOptions>& options) {
                 *executor = std::make_unique<SharedExecutor>(model.bind(options.front()));
               });
  nb::object bound = nb::cast(executor->release(), nb::rv_policy::take_ownership);
  nb::module_::import_("tessera.messages").attr("tell_bound")(bound);
  return bound;
}

void save_bundle(LoadedModel& self, const std::filesystem::path& filename, const nb::object& shapes,
                 const nb::kwargs& keywords) {
  std::vector<nb::object> all = {shapes};
  if (nb::isinstance<nb::list>(shapes) || nb::isinstance<nb::tuple>(shapes)) {
    all.clear();
    for (const nb::handle one : shapes) all.push_back(nb::borrow(one));
  }
  with_options(self, all, keywords,
               [filename](const Model& model, const std::vector<BindOptions>& options) {
                 model.save_bundle(filename, options);
               });
}

const ModelDescription& description_of(LoadedModel& self) {
  if (!self.description) self.description = self.model.describe();
  return *self.description;
}

nb::object describe_model(LoadedModel& self, const std::optional<Shapes>& shapes) {
  if (!shapes) return to_python(description_of(self));
  const ModelDescription description =
      answering_signals([model = shared_reference(nb::find(self)), &self, given = *shapes] {
        return self.model.describe(given);
      });
  self.log->raise_error();
  return to_python(description);
}

nb::object model_text(LoadedModel& self) {
  const ModelDescription& description = description_of(self);
  return decoded("<tessera.Model '" + description.file + "', " +
                 std::to_string(description.nodes.size()) + " nodes, " +
                 values_text(description.inputs) + ">");
}

constexpr const char* kSaveCacheText =
    R"(Saves the results of the newest bind() with optimize in a file.

type: "all", "plan", or a backend's name or alias. In a file with the same fingerprint, only this
    type is replaced.
include_packs: also save the packed weights, which only this user with the same processor can use.

Raises InvalidArgument (an unknown type; nothing was bound with optimize), Unsupported (a backend
that this machine does not have) or DeviceFailed.

    model.save_cache("resnet50.cache"))";

constexpr const char* kSaveBundleText =
    R"(Writes one file, a bundle, with the model, its weights, and for each of the shapes the plan,
the packed weights and the compiled kernels. tessera.load() takes it in place of a model.

shapes: the shapes of inputs by name, as for bind(), or a list of such dictionaries: for each, the
    model is bound first, and measured unless `optimize` is False.
keywords: those of bind().

Plans are used on machines of the same kind; packs and kernels only by processes that have this
user's key. Raises as bind() does; InvalidArgument if the file cannot be written, if it exists and is
no bundle, and if this model is a bundle itself; DeviceFailed if writing fails.

    model.save_bundle("resnet50.bundle", [{"data": (1, 3, 224, 224)}, {"data": (8, 3, 224, 224)}]))";

constexpr const char* kLoadCacheText =
    R"(Loads a cache file for later binds; the contents of several files add up, and the same file again
replaces itself.

Raises as save_cache() does, InvalidArgument if the file is missing or does not fit (saying what
differs), and Corrupt; then nothing has changed.

    model.load_cache("resnet50.cache", type="onednn"))";

}  // namespace

void with_bind_options(nb::handle model, nb::handle shapes, const nb::kwargs& keywords,
                       std::function<void(const Model& model, const BindOptions& options)> action) {
  if (!nb::isinstance<LoadedModel>(model)) {
    throw nb::type_error(
        ("model: expected a tessera.Model, as tessera.load() gives, found a value of type " +
         nb::cast<std::string>(nb::type_name(model.type())))
            .c_str());
  }
  with_options(*nb::inst_ptr<LoadedModel>(model), {nb::borrow(shapes)}, keywords,
               [action = std::move(action)](const Model& of, const std::vector<BindOptions>& all) {
                 action(of, all.front());
               });
}

namespace {

void save_cache(LoadedModel& self, const std::filesystem::path& filename, const std::string& type,
                bool include_packs) {
  const Unlocked unlocked;
  self.model.save_cache(filename, type, include_packs);
}

void load_cache(LoadedModel& self, const std::filesystem::path& filename, const std::string& type) {
  const Unlocked unlocked;
  self.model.load_cache(filename, type);
}

void bind_model_properties(nb::class_<LoadedModel>& binding) {
  binding
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
      .def_prop_ro(
          "_origin", [](const LoadedModel& self) { return self.origin; },
          nb::sig("def _origin(self) -> tuple[str, dict[str, object]] | None"))
      .def("__repr__", &model_text, nb::sig("def __repr__(self) -> str"));
}

void bind_functions(nb::module_& module) {
  constexpr const char* kLoad = "tessera.load() of a file with every argument given.";
  module.def("load", &load_from<std::filesystem::path>, "model"_a, nb::kw_only(), "strict"_a,
             "keep_all_values"_a, "backends"_a, "log"_a, "information_log"_a, "threads"_a,
             "copies_weights"_a, "strict_stamps"_a, "free_inputs"_a, "origin"_a.none(), kLoad);
  constexpr const char* kLoadBytes =
      "tessera.load() of bytes with every argument given; external data is in `folder`.";
  module.def("load_bytes", &load_bytes, "model"_a, nb::kw_only(), "name"_a, "folder"_a, "strict"_a,
             "keep_all_values"_a, "backends"_a, "log"_a, "information_log"_a, "threads"_a,
             "copies_weights"_a, "strict_stamps"_a, "free_inputs"_a, "origin"_a.none(), kLoadBytes);
  constexpr const char* kInspectSignature =
      "def inspect(model: os.PathLike | str, *, strict: bool, backends: Backends, log: "
      "collections.abc.Callable) -> tessera.descriptions.ModelInspection";
  constexpr const char* kInspectBytesSignature =
      "def inspect_bytes(model: object, *, name: str, folder: os.PathLike | str, strict: bool, "
      "backends: Backends, log: collections.abc.Callable) -> "
      "tessera.descriptions.ModelInspection";
  module.def("inspect", &inspect_from<std::filesystem::path>, "model"_a, nb::kw_only(), "strict"_a,
             "backends"_a, "log"_a, nb::sig(kInspectSignature),
             "tessera.inspect() of a file with every argument given.");
  module.def("inspect_bytes", &inspect_bytes, "model"_a, nb::kw_only(), "name"_a, "folder"_a,
             "strict"_a, "backends"_a, "log"_a, nb::sig(kInspectBytesSignature),
             "tessera.inspect() of bytes with every argument given.");
}

}  // namespace

void bind_model(nb::module_& module) {
  // As long as the module: the interpreter shows them.
  static const std::string kSignature = bind_signature();
  static const std::string kText = bind_text();
  nb::class_<LoadedModel> binding(module, "Model", nb::type_slots(kModelSlots),
                                  "A loaded model. Made by tessera.load().");
  binding
      .def("bind", &bind, "shapes"_a = nb::none(), "keywords"_a, nb::sig(kSignature.c_str()),
           kText.c_str())
      .def("save_cache", &save_cache, "filename"_a, "type"_a = "all", nb::kw_only(),
           "include_packs"_a = false, kSaveCacheText)
      .def("load_cache", &load_cache, "filename"_a, "type"_a = "all", kLoadCacheText)
      .def("save_bundle", &save_bundle, "filename"_a, "shapes"_a = nb::none(), "keywords"_a,
           nb::sig("def save_bundle(self, filename: str | os.PathLike, shapes: "
                   "collections.abc.Mapping[str, collections.abc.Sequence[int]] | "
                   "collections.abc.Sequence[collections.abc.Mapping[str, "
                   "collections.abc.Sequence[int]]] | None = None, **keywords: object) -> None"),
           kSaveBundleText)
      .def(
          "cache_report", [](LoadedModel& self) { return to_python(self.model.cache_report()); },
          nb::sig("def cache_report(self) -> tessera.descriptions.CacheReport"),
          "The artifacts that the newest bind() with optimize loaded from caches.")
      .def("describe", &describe_model, "shapes"_a = nb::none(),
           nb::sig("def describe(self, shapes: collections.abc.Mapping[str, "
                   "collections.abc.Sequence[int]] | None = None) -> "
                   "tessera.descriptions.ModelDescription"),
           "Nodes, weights and sizes; with `shapes`, those of the model bound to these shapes.");
  bind_model_properties(binding);
  bind_functions(module);
}

}  // namespace tessera::python
