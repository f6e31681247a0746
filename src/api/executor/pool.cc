// Pool: threads that take requests from a queue, each with an executor of its own.
#include "tessera/pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <utility>

#include "base/threads/background_task.h"
#include "base/threads/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kMaxExecutors = 4096;
constexpr int64_t kMaxWaiting = 1'000'000'000;
// Longer than any program waits; larger numbers of nanoseconds could overflow.
constexpr std::chrono::hours kLongestWait{24 * 365};

void check(const char* option, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return;
  throw Error(
      ErrorKind::InvalidArgument, std::string("option '") + option + "' of the pool",
      "expected a number from 0 to " + std::to_string(max) + ", found " + std::to_string(value));
}

Error forked_error(const char* what) {
  return {ErrorKind::Unsupported, what,
          "it belongs to the process that this one was forked from, and its threads exist only "
          "there: make a Pool after the fork"};
}

// The pools whose callbacks the calling thread is in, as a list from the innermost one on.
struct CallbackScope {
  explicit CallbackScope(const void* of_pool) : pool(of_pool), outer(innermost) {
    innermost = this;
  }
  ~CallbackScope() { innermost = outer; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool is_in_callback_of(const void* pool) {
    const CallbackScope* scope = innermost;
    while (scope != nullptr && scope->pool != pool) scope = scope->outer;
    return scope != nullptr;
  }

  const void* const pool;
  const CallbackScope* const outer;
  static thread_local const CallbackScope* innermost;
};

thread_local const CallbackScope* CallbackScope::innermost = nullptr;

}  // namespace

// Inputs and callback belong to the thread that ends the request; `phase` changes only while the
// mutex of the pool is locked.
struct PoolRequest::State {
  enum class Phase : uint8_t { Waiting, Running, Done };

  std::weak_ptr<Pool::State> pool;
  std::map<std::string, AnyTensor> inputs;
  Pool::OnDone on_done;
  std::atomic<Phase> phase = Phase::Waiting;
  pid_t process = ::getpid();
  std::promise<std::vector<AnyTensor>> promise;
  std::shared_future<std::vector<AnyTensor>> ended = promise.get_future();

  void end(PoolResult result) {
    phase = Phase::Done;
    result.inputs = std::move(inputs);
    if (on_done) {
      const Pool::OnDone callback = std::exchange(on_done, {});
      callback(std::move(result));
      promise.set_exception(std::make_exception_ptr(
          Error(ErrorKind::InvalidArgument, "request of a pool",
                "expected one without a callback: its callback has received the outputs")));
      return;
    }
    // A caller that waits may free the memory of inputs afterwards.
    result.inputs.clear();
    if (result.error) return promise.set_exception(result.error);
    promise.set_value(std::move(result.outputs));
  }
  bool is_done() const {
    return ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  void check_process() const {
    if (!is_done() && process != ::getpid()) throw forked_error("request of a pool");
  }
};

// Owned by the Pool and by each of its threads. Requests are destroyed only while the mutex is not
// locked, because destructors of inputs and callbacks may wait, for example for the lock of an
// interpreter whose owner waits for this mutex.
struct Pool::State {
  using Request = std::shared_ptr<PoolRequest::State>;

  pid_t process = ::getpid();
  int threads_each = 1;
  int64_t max_waiting = 0;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;

  mutable std::mutex mutex;                // protects all members below
  std::condition_variable work_or_close;   // a thread may take a request, or has to end
  std::condition_variable place_or_close;  // the queue has a place, or the pool is closed
  std::condition_variable request_ended;   // for close()
  std::deque<Request> queue;
  bool is_closed = false;
  bool is_process_ending = false;
  size_t running = 0;  // requests that threads have taken, until their runs have ended
  size_t ending = 0;  // requests that have a result or are cancelled, but whose callers do not know
  std::vector<std::shared_ptr<Executor>> executors;  // null when its thread has ended
  std::vector<std::unique_ptr<BackgroundTask>> tasks;
  size_t executor_count = 0;

  bool has_forked() const { return process != ::getpid(); }
  bool has_place() const {
    return queue.size() + running < executor_count + static_cast<size_t>(max_waiting);
  }
  bool has_ended() const { return queue.empty() && running == 0 && ending == 0; }

  // Waits for a request to run; null if the thread has to end.
  Request take() {
    std::unique_lock lock(mutex);
    work_or_close.wait(lock, [&] { return !queue.empty() || is_closed; });
    if (queue.empty()) return nullptr;
    Request request = std::move(queue.front());
    queue.pop_front();
    ++running;
    request->phase = PoolRequest::State::Phase::Running;
    return request;
  }

  // Requires that the request is one of `ending`.
  void end(Request request, PoolResult result) {
    {
      const CallbackScope scope(this);
      request->end(std::move(result));
    }
    request.reset();
    {
      const std::lock_guard lock(mutex);
      --ending;
    }
    request_ended.notify_all();
  }

  void cancel(Request request) {
    place_or_close.notify_one();
    end(std::move(request),
        {.error = std::make_exception_ptr(Error(ErrorKind::Cancelled, "request of a pool",
                                                "it was cancelled before its run began"))});
  }

  // A caller that knows the result may submit the next request, so the place is free before.
  void note_run_ended() {
    {
      const std::lock_guard lock(mutex);
      --running;
      ++ending;
    }
    place_or_close.notify_one();
  }

  // The loop of one thread.
  void work(size_t index, Executor& executor, CancellationToken& token) {
    while (Request request = take()) {
      // Objects that libraries made static outlive the runs; see CancellationToken.
      token.is_cancelled();
      PoolResult result{.has_started = true};
      try {
        result.outputs = executor.run_any(request->inputs);
      } catch (...) {
        result.error = std::current_exception();
      }
      token.is_cancelled();
      note_run_ended();
      end(std::move(request), std::move(result));
    }
    // The thread destroys the executor when it drops what it runs.
    const std::lock_guard lock(mutex);
    executors[index].reset();
  }

  void begin_close(Waiting waiting) {
    std::deque<Request> cancelled;
    {
      const std::lock_guard lock(mutex);
      is_closed = true;
      if (waiting == Waiting::Cancel) cancelled.swap(queue);
      for (const Request& request : cancelled) request->phase = PoolRequest::State::Phase::Done;
      ending += cancelled.size();
    }
    work_or_close.notify_all();
    place_or_close.notify_all();
    for (Request& request : cancelled) cancel(std::move(request));
  }

  // For the end of the process.
  void stop() {
    {
      const std::lock_guard lock(mutex);
      is_process_ending = true;
    }
    begin_close(Waiting::Cancel);
    const std::lock_guard lock(mutex);
    for (const std::shared_ptr<Executor>& executor : executors) {
      if (executor) executor->cancel();
    }
  }

  bool wait_until_ended(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex);
    return request_ended.wait_for(lock, std::min<std::chrono::nanoseconds>(time, kLongestWait),
                                  [&] { return has_ended(); });
  }

  bool cancel_waiting(const Request& request) {
    {
      const std::lock_guard lock(mutex);
      const auto found = std::find(queue.begin(), queue.end(), request);
      if (found == queue.end()) return false;
      queue.erase(found);
      request->phase = PoolRequest::State::Phase::Done;
      ++ending;
    }
    cancel(request);
    return true;
  }

  // Waits for a place without a limit if `max_wait` is not set.
  std::optional<PoolRequest> add(const std::shared_ptr<State>& self,
                                 std::map<std::string, AnyTensor> given, OnDone on_done,
                                 std::optional<std::chrono::nanoseconds> max_wait) {
    if (has_forked()) throw forked_error("pool");
    const Request request = std::make_shared<PoolRequest::State>();
    request->pool = self;
    request->inputs = std::move(given);
    request->on_done = std::move(on_done);
    {
      std::unique_lock lock(mutex);
      const auto may_go_on = [&] { return is_closed || has_place(); };
      if (!may_go_on() && (!max_wait || max_wait->count() > 0)) {
        if (CallbackScope::is_in_callback_of(this)) {
          throw Error(ErrorKind::InvalidArgument, "pool",
                      "expected a free place in the queue, found none, and a callback of a request "
                      "would wait for itself: call try_submit() without a time there");
        }
        if (max_wait) {
          place_or_close.wait_for(lock, std::min<std::chrono::nanoseconds>(*max_wait, kLongestWait),
                                  may_go_on);
        } else {
          place_or_close.wait(lock, may_go_on);
        }
      }
      if (is_process_ending) {
        throw Error(ErrorKind::Cancelled, "pool", "the process is ending, so no request can begin");
      }
      if (is_closed) {
        throw Error(ErrorKind::InvalidArgument, "pool",
                    "expected an open pool, found one that is closed: make another one");
      }
      if (!has_place()) return std::nullopt;
      queue.push_back(request);
    }
    work_or_close.notify_one();
    return PoolRequest(request);
  }

  void start(const std::shared_ptr<State>& self) {
    for (size_t index = 0; index < executor_count; ++index) {
      auto task = BackgroundTask::start(
          [self, index, executor = executors[index]](CancellationToken& token) {
            self->work(index, *executor, token);
          },
          [known = std::weak_ptr(self)] {
            if (const auto state = known.lock()) state->stop();
          });
      if (!task) {
        throw Error(ErrorKind::Unsupported, "pool",
                    "no threads can be started, because the process is ending");
      }
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
  }
};

PoolRequest::PoolRequest(std::shared_ptr<State> state) : state_(std::move(state)) {}

std::vector<AnyTensor> PoolRequest::get_any() const {
  state_->check_process();
  return state_->ended.get();
}

std::vector<Tensor> PoolRequest::get() const {
  std::vector<Tensor> outputs;
  for (AnyTensor& output : get_any()) {
    if (Tensor* const dense = std::get_if<Tensor>(&output)) {
      outputs.push_back(std::move(*dense));
      continue;
    }
    throw Error(ErrorKind::InvalidArgument, "request of a pool",
                "get() gives dense outputs, but output " + std::to_string(outputs.size()) +
                    " is sparse: call get_any()");
  }
  return outputs;
}

bool PoolRequest::wait_for(std::chrono::nanoseconds time) const {
  state_->check_process();
  return state_->ended.wait_for(std::min<std::chrono::nanoseconds>(time, kLongestWait)) ==
         std::future_status::ready;
}

bool PoolRequest::is_done() const { return state_->is_done(); }

bool PoolRequest::is_running() const { return state_->phase == State::Phase::Running; }

bool PoolRequest::cancel() {
  const std::shared_ptr<Pool::State> pool = state_->pool.lock();
  if (!pool || pool->has_forked()) return false;
  return pool->cancel_waiting(state_);
}

Pool::Pool(const Model& model, const PoolOptions& options, const BindOptions& bind)
    : state_(std::make_shared<State>()) {
  BindOptions each = bind;
  if (each.threads == 0) each.threads = 1;
  check("executors", options.executors, kMaxExecutors);
  check("max_waiting", options.max_waiting, kMaxWaiting);
  state_->max_waiting = options.max_waiting;
  int executors = options.executors;
  if (executors == 0) executors = std::max(1, ThreadPool().threads() / std::max(1, each.threads));
  for (int index = 0; index < executors; ++index) {
    state_->executors.push_back(std::make_shared<Executor>(model.bind(each)));
  }
  const Executor& first = *state_->executors.front();
  state_->executor_count = state_->executors.size();
  state_->threads_each = first.threads();
  state_->inputs = first.inputs();
  state_->outputs = first.outputs();
  try {
    state_->start(state_);
  } catch (...) {
    state_->begin_close(Waiting::Cancel);
    throw;
  }
}

Pool::~Pool() {
  // The threads keep the state; in a forked process it stays as it was when the process was forked,
  // because a lock may be locked for ever, and waiting threads do not exist there.
  if (state_->has_forked()) return;
  state_->begin_close(Waiting::Cancel);
  if (CallbackScope::is_in_callback_of(state_.get())) return;
  state_->wait_until_ended(kLongestWait);
  std::vector<std::unique_ptr<BackgroundTask>> tasks;
  const std::lock_guard lock(state_->mutex);
  tasks.swap(state_->tasks);
}

PoolRequest Pool::submit(std::map<std::string, AnyTensor> inputs, OnDone on_done) {
  return *state_->add(state_, std::move(inputs), std::move(on_done), std::nullopt);
}

std::optional<PoolRequest> Pool::try_submit(std::map<std::string, AnyTensor> inputs, OnDone on_done,
                                            std::chrono::nanoseconds max_wait) {
  return state_->add(state_, std::move(inputs), std::move(on_done), max_wait);
}

void Pool::begin_close(Waiting waiting) {
  if (!state_->has_forked()) state_->begin_close(waiting);
}

bool Pool::wait_for(std::chrono::nanoseconds time) const {
  if (state_->has_forked()) return true;
  if (CallbackScope::is_in_callback_of(state_.get())) {
    throw Error(ErrorKind::InvalidArgument, "pool",
                "a callback of a request cannot wait for the end of all requests, of which it is "
                "one: call begin_close() there, or close(wait=False) in Python");
  }
  return state_->wait_until_ended(time);
}

void Pool::close(Waiting waiting) {
  begin_close(waiting);
  wait_for(kLongestWait);
}

int Pool::executors() const { return static_cast<int>(state_->executor_count); }
int Pool::threads() const { return state_->threads_each; }
int64_t Pool::max_waiting() const { return state_->max_waiting; }

int64_t Pool::waiting() const {
  if (state_->has_forked()) return 0;
  const std::lock_guard lock(state_->mutex);
  return std::ssize(state_->queue);
}

const std::vector<ValueDescription>& Pool::inputs() const { return state_->inputs; }
const std::vector<ValueDescription>& Pool::outputs() const { return state_->outputs; }

}  // namespace tessera
