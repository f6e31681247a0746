// Runs a model for many callers at once: executors that share its weights, each on a thread of its
// own, and a bounded queue in front of them.
//
//   tessera::Pool pool(model, {.executors = 2});
//   tessera::PoolRequest request = pool.submit({{"data_0", picture}});
//   const std::vector<tessera::Tensor> outputs = request.get();
//
// docs/decisions/0049-a-pool-of-executors.md says why it is made so.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

struct PoolOptions {
  // How many requests run at the same time, each on an executor of its own. 0: as many as there are
  // cores for, with BindOptions::threads threads each.
  int executors = 0;
  // How many requests may wait for an executor, in addition to those that run. A run ends before
  // its callback is called.
  int64_t max_waiting = 64;
};

// How a request ended.
struct PoolResult {
  std::vector<AnyTensor> outputs;           // as of Executor::run_any(); empty after an error
  std::exception_ptr error;                 // null if the run succeeded
  bool has_started = false;                 // false: it was cancelled before its run began
  std::map<std::string, AnyTensor> inputs;  // those of the request
};

// A request that was submitted. Copies refer to the same request. Thread-safe.
class PoolRequest {
 public:
  // Waits for the end of the request. Both throw what its run threw, and Cancelled if it was
  // cancelled; get() also InvalidArgument if an output is sparse. Both throw InvalidArgument for a
  // request that was submitted with a callback, which gets the outputs instead; and Unsupported in
  // a process that was forked before the request had ended, in which it never ends.
  std::vector<Tensor> get() const;
  std::vector<AnyTensor> get_any() const;

  // Waits for at most this long. Returns whether the request has ended.
  bool wait_for(std::chrono::nanoseconds time) const;
  bool is_done() const;
  // Whether its run has begun and not ended.
  bool is_running() const;

  // Cancels the request if its run has not begun: it then ends with Cancelled, and its place in the
  // queue is free. Returns whether this call cancelled it. Runs are never interrupted.
  bool cancel();

 private:
  friend class Pool;
  struct State;
  explicit PoolRequest(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Executors of one model. Thread-safe, but only one thread may destroy a Pool, and no other may use
// it meanwhile.
//
// Requests begin in the order in which they were submitted. Each executor has plans for several
// shapes, as Executor::run() describes; requests may have different shapes. An error of a run
// belongs to its request, and the executor takes the next one.
//
// When the process ends (main() returns, or exit() is called), requests that have not begun end
// with Cancelled, those that run are cancelled before their next step, and the threads end. In a
// forked process, a Pool of the parent has no threads: submit() throws Unsupported there, and
// close() and the destructor do nothing.
class Pool {
 public:
  // Binds `options.executors` executors. In `bind`, threads = 0 means one thread for each of them,
  // so that executors on all cores do not compete for these. Throws as Model::bind() does, and
  // InvalidArgument if an option is out of range.
  explicit Pool(const Model& model, const PoolOptions& options = {}, const BindOptions& bind = {});
  // Closes the pool, cancelling requests that have not begun. Waits for those that run, unless it
  // is called by a callback of a request.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Receives the result of a request, on the thread that ended it. This is the thread of an
  // executor, which takes no other request meanwhile, or the thread that cancelled the request.
  // Must not throw, and must not wait for requests of the same pool.
  using OnDone = std::function<void(PoolResult result)>;

  // Adds a request; `inputs` are those of Executor::run_any(). The memory of inputs must not be
  // changed until the request has ended. If the queue is full, it waits for a place. Throws
  // InvalidArgument if the pool is closed, also while it waits, and if a callback of a request
  // would have to wait; Cancelled if the process is ending; Unsupported in a forked process. Wrong
  // inputs are an error of the request.
  PoolRequest submit(std::map<std::string, AnyTensor> inputs, OnDone on_done = {});
  // Same as submit(), but waits for at most `max_wait`; nullopt if the queue is still full then.
  std::optional<PoolRequest> try_submit(std::map<std::string, AnyTensor> inputs,
                                        OnDone on_done = {},
                                        std::chrono::nanoseconds max_wait = {});

  // Whether requests that have not begun are run or cancelled.
  enum class Waiting : uint8_t { Run, Cancel };
  // Later calls of submit() throw. close() returns when the last request has ended; begin_close()
  // returns at once. Both may be called repeatedly. close() throws as wait_for() does.
  void close(Waiting waiting = Waiting::Run);
  void begin_close(Waiting waiting = Waiting::Run);
  // Waits for at most this long until all requests have ended. Returns whether they have. Throws
  // InvalidArgument if a callback of a request calls it.
  bool wait_for(std::chrono::nanoseconds time) const;

  int executors() const;
  // Threads of each executor.
  int threads() const;
  int64_t max_waiting() const;
  // Requests that have not begun. 0 in a forked process.
  int64_t waiting() const;
  // Inputs and outputs with the shapes that were bound.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

 private:
  friend class PoolRequest;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
