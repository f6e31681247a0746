// The Python module tessera._core: load(), Model, Executor, Pool, Backends. Programs import
// tessera/__init__.py instead. The files arrays.* and descriptions.* convert arrays and
// descriptions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/threads/background_task.h"
#include "python/checked_calls.h"
#include "python/descriptions.h"
#include "python/device_arrays.h"
#include "python/executor.h"
#include "python/interpreter_lock.h"
#include "python/metadata.h"
#include "python/model.h"
#include "python/pool.h"
#include "python/signal_wait.h"
#include "python/sparse_arrays.h"
#include "python/text.h"
#include "tessera/tessera.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

// Raises the class of tessera/errors.py with the name of the error's kind.
void raise_error(const std::exception_ptr& pointer, void* /*unused*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const std::string kind(name(error.kind()));
    const nb::object type = nb::module_::import_("tessera.errors").attr(kind.c_str());
    const nb::object exception = type(decoded(error.where()), decoded(error.message()));
    PyErr_SetObject(type.ptr(), exception.ptr());
  }
}

// Opening libraries takes seconds if they are not in memory.
std::vector<BackendDescription> describe_backends(const Backends& backends) {
  return answering_signals([backends] { return backends.describe(); });
}

void load_backend(const Backends& backends, const std::filesystem::path& path) {
  SignalWait().run([opened = backends, path]() mutable { opened.load_backend(path); });
}

void bind_backends(nb::module_& module) {
  nb::class_<Backends> backends(module, "Backends",
                                R"(A set of backends that models may run on.

It contains the backends that are built in, the plug-ins in the folder next to the library, those
that TESSERA_BACKEND_PATH names, and those that are added here. A plug-in is opened when it is first
needed.

    backends = tessera.Backends()
    backends.add_path("/opt/plugins")
    model = tessera.load("model.onnx", backends=backends))");
  backends.def(nb::init<>())
      .def("add_path", &Backends::add_path, "path"_a, nb::call_guard<Unlocked>(),
           "Adds a plug-in, or a folder of plug-ins, to be opened when needed.")
      .def("load_backend", &load_backend, "path"_a,
           "Opens a plug-in now. Raises Unsupported with the reason if it cannot be used.")
      .def(
          "describe", [](const Backends& self) { return to_list(describe_backends(self)); },
          nb::sig("def describe(self) -> list[tessera.descriptions.BackendDescription]"),
          "Opens all known backends to find out whether they can be used, and describes them.")
      .def("__repr__", [](const Backends&) { return "<tessera.Backends; describe() lists them>"; });
  bind_device_memory(backends);
}

void bind_placement_rules(nb::module_& module) {
  nb::class_<Pin>(module, "Pin",
                  R"(Forces nodes to run on a backend, and optionally with one of its algorithms.

nodes: the name of a node; or a prefix of names, followed by '*'; or "key=value", a metadata
    property of nodes in the model's file.
algorithm: "" means any; else a prefix of the name of the algorithm.)")
      .def(
          "__init__",
          [](Pin* pin, std::string nodes, std::string backend, std::string algorithm) {
            new (pin) Pin{std::move(nodes), std::move(backend), std::move(algorithm)};
          },
          "nodes"_a, "backend"_a, "algorithm"_a = "")
      .def_rw("nodes", &Pin::nodes)
      .def_rw("backend", &Pin::backend)
      .def_rw("algorithm", &Pin::algorithm)
      .def("__repr__", [](const Pin& pin) {
        return nb::str("tessera.Pin({!r}, {!r}, {!r})")
            .format(pin.nodes, pin.backend, pin.algorithm);
      });
  nb::class_<Exclusion>(module, "Exclusion",
                        "Forbids a backend for the nodes of an op, or for all nodes (op \"\").")
      .def(
          "__init__",
          [](Exclusion* exclusion, std::string backend, std::string op) {
            new (exclusion) Exclusion{std::move(backend), std::move(op)};
          },
          "backend"_a, "op"_a = "")
      .def_rw("backend", &Exclusion::backend)
      .def_rw("op", &Exclusion::op)
      .def("__repr__", [](const Exclusion& exclusion) {
        return nb::str("tessera.Exclusion({!r}, {!r})").format(exclusion.backend, exclusion.op);
      });
}

// Background tasks end before the interpreter is shut down, because they may need it to write to
// the log.
void end_background_tasks_at_exit() {
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&end_background_tasks, nb::call_guard<Unlocked>()));
}

}  // namespace
}  // namespace tessera::python

NB_MODULE(_core, module) {
  // nanobind would warn at exit if a global holds a model whose `log` is a function of the same
  // module: Python cannot see this reference cycle. The process ends, so nothing is lost.
  nb::set_leak_warnings(false);
  module.doc() = "The compiled part of tessera; import tessera instead.";
  nb::register_exception_translator(tessera::python::raise_error);
  module.def("version", &tessera::version, "The version of the library: three numbers with dots.");
  module.def(
      "optimizes_by_default", [] { return tessera::optimize_of({}) != tessera::Optimize::Off; },
      "Whether bind() measures if nothing is said: False with TESSERA_OPTIMIZE=0 in the "
      "environment.");
  tessera::python::bind_checked_calls(module);
  tessera::python::bind_device_arrays(module);
  tessera::python::bind_backends(module);
  tessera::python::bind_placement_rules(module);
  tessera::python::bind_sparse_arrays(module);
  tessera::python::bind_executor(module);
  tessera::python::bind_model(module);
  tessera::python::bind_pool(module);
  tessera::python::bind_metadata(module);
  tessera::python::watch_threads();
  // The last to be registered is the first to be called.
  tessera::python::end_background_tasks_at_exit();
}
