#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <string>

#include "base/parallel.h"
#include "tessera/error.h"

namespace tessera {

struct ThreadPool::State {
  State(int count, Denormals rule) : threads(count), denormals(rule), arena(count) {
    // An arena gives its workers the denormal rule of the thread that created it.
    const ScopedDenormals kept(denormals);
    arena.initialize();
  }
  int threads;
  Denormals denormals;
  oneapi::tbb::task_arena arena;
};

ThreadPool::ThreadPool(int threads, Denormals denormals) {
  if (threads < 0) {
    throw Error(ErrorKind::InvalidArgument, "threads",
                "expected 0 (all cores) or more, found " + std::to_string(threads));
  }
  // Respects the affinity mask: a process confined to one core gets one thread.
  if (threads == 0) threads = oneapi::tbb::info::default_concurrency();
  state_ = std::make_unique<State>(threads, denormals);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::execute(FunctionRef<void()> body) {
  const ScopedDenormals kept(state_->denormals);
  state_->arena.execute(body);
}

void ThreadPool::parallel_for(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (state_->threads == 1 || count <= grain) {
    body(0, count);
    return;
  }
  state_->arena.execute([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(grain)),
        [&](const oneapi::tbb::blocked_range<int64_t>& range) {
          body(range.begin(), range.end());
        });
  });
}

}  // namespace tessera
