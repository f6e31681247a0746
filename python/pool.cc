#include "python/pool.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bind_options.h"
#include "python/descriptions.h"
#include "python/executor.h"
#include "python/interpreter_lock.h"
#include "python/model.h"
#include "python/sparse_arrays.h"
#include "tessera/pool.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

// How long a call waits before it looks for Ctrl-C again.
constexpr std::chrono::milliseconds kSignalPoll{50};

// The pool lives as long as this object or a request that has not ended: then
// `Pool(model).submit(x)` gives a future that ends.
struct SharedPool {
  std::shared_ptr<Pool> pool;
  NamedInputs named_inputs;

  explicit SharedPool(std::shared_ptr<Pool> of) : pool(std::move(of)) {
    named_inputs = NamedInputs(pool->inputs());
  }
  ~SharedPool() {
    if (PyGILState_Check() == 0) return;
    // The destructor of Pool waits for threads that may want the lock.
    const Unlocked unlocked;
    pool.reset();
  }
  SharedPool(const SharedPool&) = delete;
  SharedPool& operator=(const SharedPool&) = delete;
};

// The exception of Python that stands for `error`. Requires the interpreter's lock.
nb::object exception_of(const std::exception_ptr& error) {
  try {
    // nanobind translates exceptions that leave a function of Python.
    nb::cpp_function([error] { std::rethrow_exception(error); })();
  } catch (nb::python_error& raised) {
    return nb::borrow(raised.value());
  }
  return nb::none();
}

// A future of Python, to which a thread of the pool gives the result of its request.
struct PendingFuture {
  nb::object future;
  std::shared_ptr<Pool> pool;

  // May be destroyed on any thread; releases the pool last, without the lock.
  ~PendingFuture() {
    if (!future.is_valid()) return;
    const Locked lock;
    future.reset();
  }
};

void settle(PendingFuture& pending, PoolResult result) {
  const Locked lock;
  try {
    if (!result.has_started) {
      pending.future.attr("note_cancelled")();
    } else if (result.error) {
      pending.future.attr("set_exception")(exception_of(result.error));
    } else {
      nb::object outputs;
      try {
        outputs = to_any_arrays(std::move(result.outputs));
      } catch (...) {
        pending.future.attr("set_exception")(exception_of(std::current_exception()));
      }
      if (outputs.is_valid()) pending.future.attr("set_result")(outputs);
    }
  } catch (nb::python_error& error) {
    // Occurs only if somebody else has set the result of the future.
    error.discard_as_unraisable("tessera.Pool");
  }
  // Arrays are released once, while this thread has the lock.
  result.inputs.clear();
  pending.future.reset();
}

nb::object submit(SharedPool& shared, const nb::args& arrays, bool waits) {
  const NamedTensors inputs = by_name_or_in_order(arrays, shared.named_inputs);
  nb::object future = nb::module_::import_("tessera.pool_future").attr("PoolFuture")();
  const auto pending = std::make_shared<PendingFuture>(future, shared.pool);
  const auto add = [&](std::chrono::nanoseconds max_wait) {
    return shared.pool->try_submit(
        inputs, [pending](PoolResult result) { settle(*pending, std::move(result)); }, max_wait);
  };
  std::optional<PoolRequest> request = add({});
  while (!request) {
    if (!waits) return nb::none();
    {
      const Unlocked unlocked;
      request = add(kSignalPoll);
    }
    if (!request && PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
  future.attr("request") = *std::move(request);
  return future;
}

void close(SharedPool& shared, bool wait, bool cancel_waiting) {
  {
    const Unlocked unlocked;
    shared.pool->begin_close(cancel_waiting ? Pool::Waiting::Cancel : Pool::Waiting::Run);
  }
  while (wait) {
    bool has_ended = false;
    {
      const Unlocked unlocked;
      has_ended = shared.pool->wait_for(kSignalPoll);
    }
    if (has_ended) return;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
}

constexpr const char* kPoolText =
    R"(Executors of one model, which share its weights and run requests of many callers at once.

executors: how many requests run at the same time; 0: as many as the cores allow, with `threads`
    threads each.
max_waiting: how many requests may wait for an executor, in addition to those that run.
threads: the threads of each executor; 0 means one here.

The other arguments are those of Model.bind(), and the same errors are raised. Requests begin in
the order in which they were submitted. They may have different shapes, as those of Executor.run().
All methods are thread-safe, and do not keep the interpreter's lock while they wait.

At the end of the interpreter, requests that have not begun are cancelled, and those that run raise
Cancelled. In a process that was forked after the pool was made, submit() and result() of futures
that had not ended raise Unsupported.

    with tessera.Pool(model, executors=2) as pool:
        futures = [pool.submit(picture) for picture in pictures]
        results = [future.result() for future in futures]

    probabilities, = await asyncio.wrap_future(pool.submit(picture)))";

constexpr const char* kSubmitText =
    R"(Adds a request: a dictionary of arrays by name, or one array for each of `inputs`, in order.

Returns a concurrent.futures.Future, whose result is what Executor.run() returns, or the exception
that it raises. cancel() succeeds before the run begins, and frees the place in the queue. Callbacks
of futures are called on the thread of an executor, which takes no other request meanwhile; they must
not wait for requests of this pool. Arrays must not be changed until the future is done: they are
read in place if they are dense, row-major and start at a multiple of 64 bytes.

If the queue is full, it waits for a place. Raises InvalidArgument if the pool is closed, or if a
callback would have to wait; Cancelled if the interpreter is ending.)";

void construct_pool(SharedPool* self, nb::handle model, const nb::object& shapes, int executors,
                    int64_t max_waiting, const nb::kwargs& keywords) {
  const auto pool = std::make_shared<std::shared_ptr<Pool>>();
  const PoolOptions sizes{executors, max_waiting};
  with_bind_options(model, shapes, keywords,
                    [pool, sizes](const Model& of, const BindOptions& options) {
                      *pool = std::make_shared<Pool>(of, sizes, options);
                    });
  new (self) SharedPool(std::move(*pool));
}

using PoolClass = nb::class_<SharedPool>;

void bind_ends(PoolClass& binding) {
  binding
      .def("close", &close, nb::kw_only(), "wait"_a = true, "cancel_waiting"_a = false,
           "Later calls of submit() raise InvalidArgument. Requests that have not begun still run, "
           "unless `cancel_waiting`. Returns when all requests have ended, or at once with "
           "wait=False. Leaving a `with` block calls it.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> Pool"))
      .def(
          "__exit__",
          [](SharedPool& self, const nb::args&) {
            close(self, /*wait=*/true, /*cancel_waiting=*/false);
          },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

void bind_properties(PoolClass& binding) {
  binding
      .def_prop_ro(
          "executors", [](const SharedPool& self) { return self.pool->executors(); },
          "The number of requests that run at the same time.")
      .def_prop_ro(
          "threads", [](const SharedPool& self) { return self.pool->threads(); },
          "The number of threads of each executor.")
      .def_prop_ro(
          "max_waiting", [](const SharedPool& self) { return self.pool->max_waiting(); },
          "The number of requests that may wait for an executor.")
      .def_prop_ro(
          "waiting", [](const SharedPool& self) { return self.pool->waiting(); },
          "The number of requests that have not begun.")
      .def_prop_ro(
          "inputs", [](const SharedPool& self) { return to_list(self.pool->inputs()); },
          nb::sig("def inputs(self) -> list[tessera.descriptions.ValueDescription]"),
          "The inputs of a request, with the bound shapes.")
      .def_prop_ro(
          "outputs", [](const SharedPool& self) { return to_list(self.pool->outputs()); },
          nb::sig("def outputs(self) -> list[tessera.descriptions.ValueDescription]"),
          "The results of a request, with the bound shapes.")
      .def(
          "__repr__",
          [](const SharedPool& self) {
            return "<tessera.Pool of " + std::to_string(self.pool->executors()) +
                   " executors; threads of each: " + std::to_string(self.pool->threads()) +
                   "; waiting: " + std::to_string(self.pool->waiting()) + " of at most " +
                   std::to_string(self.pool->max_waiting()) + ">";
          },
          nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void bind_pool(nb::module_& module) {
  // As long as the module: the interpreter shows it.
  static const std::string kSignature = "def __init__(self, model: Model, " + bind_parameters() +
                                        ", executors: int = 0, max_waiting: int = 64) -> None";
  nb::class_<PoolRequest>(module, "PoolRequest", "A request of a Pool; used by its futures.")
      .def("cancel", &PoolRequest::cancel)
      .def("is_running", &PoolRequest::is_running);
  PoolClass binding(module, "Pool", kPoolText);
  binding
      .def("__init__", &construct_pool, "model"_a, "shapes"_a = nb::none(), nb::kw_only(),
           "executors"_a = 0, "max_waiting"_a = PoolOptions{}.max_waiting, "keywords"_a,
           nb::sig(kSignature.c_str()))
      .def(
          "submit",
          [](SharedPool& self, const nb::args& inputs) {
            return submit(self, inputs, /*waits=*/true);
          },
          "inputs"_a,
          nb::sig("def submit(self, *inputs: numpy.typing.ArrayLike | SparseArray | "
                  "collections.abc.Mapping[str, numpy.typing.ArrayLike | SparseArray]) -> "
                  "concurrent.futures.Future[list[numpy.ndarray | SparseArray]]"),
          kSubmitText)
      .def(
          "try_submit",
          [](SharedPool& self, const nb::args& inputs) {
            return submit(self, inputs, /*waits=*/false);
          },
          "inputs"_a,
          nb::sig("def try_submit(self, *inputs: numpy.typing.ArrayLike | SparseArray | "
                  "collections.abc.Mapping[str, numpy.typing.ArrayLike | SparseArray]) -> "
                  "concurrent.futures.Future[list[numpy.ndarray | SparseArray]] | None"),
          "submit(), but None if the queue is full. It never waits.");
  bind_ends(binding);
  bind_properties(binding);
}

}  // namespace tessera::python
