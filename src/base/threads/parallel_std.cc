#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "base/threads/start_thread.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// More than any machine has; each costs memory of its own.
constexpr int kMaxThreads = 4096;

}  // namespace

struct ThreadPool::State {
  int threads = 1;
  Denormals denormals = Denormals::Keep;
};

ThreadPool::ThreadPool(int threads, Denormals denormals) : state_(std::make_unique<State>()) {
  if (threads < 0 || threads > kMaxThreads) {
    throw Error(ErrorKind::InvalidArgument, "option 'threads'",
                "expected 0 (all cores) to " + std::to_string(kMaxThreads) + ", found " +
                    std::to_string(threads));
  }
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  state_->threads = threads;
  state_->denormals = denormals;
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::execute(FunctionRef<void()> body) {
  const NoForkSection section;
  const ScopedDenormals kept(state_->denormals);
  body();
}

void ThreadPool::parallel_for(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (state_->threads == 1 || count <= grain) {
    body(0, count);
    return;
  }
  const NoForkSection section;
  // Threads are started for each loop: slow, but ThreadSanitizer understands every synchronisation.
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto work = [&] {
    const NoForkSection::Part part(true);
    const ScopedDenormals kept(state_->denormals);
    for (;;) {
      const int64_t begin = next.fetch_add(grain);
      if (begin >= count) return;
      try {
        body(begin, std::min(count, begin + grain));
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first_error) first_error = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (int index = 1; index < state_->threads; ++index) others.push_back(start_thread(work));
  } catch (const Error&) {
    if (others.empty()) return body(0, count);
  }
  work();
  for (std::thread& thread : others) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace tessera
