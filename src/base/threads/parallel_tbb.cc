#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/before_fork.h"
#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "base/threads/start_thread.h"
#include "base/threads/thread_team.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// More than any machine has; each costs memory of its own.
constexpr int kMaxThreads = 4096;

// oneTBB starts its threads within loops, also of libraries, and some of these end the process if
// the system refuses. So as many threads are started before, for a moment.
void require_threads(int threads) {
  static std::atomic<int> known = 1;
  const int wanted = std::min(threads, oneapi::tbb::info::default_concurrency());
  if (wanted <= known) return;
  std::atomic<bool> may_end = false;
  std::vector<std::thread> started;
  const auto join = [&] {
    may_end = true;
    may_end.notify_all();
    for (std::thread& thread : started) thread.join();
  };
  try {
    for (int count = 1; count < wanted; ++count) {
      started.push_back(start_thread([&] { may_end.wait(false); }));
    }
  } catch (...) {
    join();
    throw;
  }
  join();
  known = wanted;
}

// The threads of oneTBB take its lock when they go to sleep. Making an arena waits for the thread
// that has the lock.
void settle_tbb() {
  oneapi::tbb::task_arena arena(1);
  arena.initialize();
}

// Whether a forked process can use oneTBB: a thread that ended in the parent may have had its lock.
bool is_usable_here() {
  static const bool kIsUsable = [] {
    const auto is_made = std::make_shared<std::atomic<bool>>(false);
    std::thread([is_made] {
      settle_tbb();
      *is_made = true;
    }).detach();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!*is_made && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return is_made->load();
  }();
  return kIsUsable;
}

// The arenas of pools that are gone. oneTBB keeps several kB of an arena that ends while a thread
// is about to join it, which happens behind every short loop (findings/onetbb_arenas.sh); so the
// next pool takes it over.
class IdleArenas {
 public:
  using Arena = std::unique_ptr<oneapi::tbb::task_arena>;

  // The arenas of this process. After a fork, the arenas of the parent are not used, nor their
  // lock, which a thread may have held.
  static IdleArenas& of_this_process() {
    static std::atomic<IdleArenas*> present = nullptr;
    IdleArenas* known = present;
    while (known == nullptr || known->forks_ != fork_count()) {
      auto made = std::make_unique<IdleArenas>();
      if (present.compare_exchange_strong(known, made.get())) return *made.release();
    }
    return *known;
  }

  // An arena gives its workers the denormal rule of the thread that created it.
  Arena take(int threads, Denormals denormals) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<Arena>& idle = idle_[{threads, denormals}];
      if (!idle.empty()) {
        Arena arena = std::move(idle.back());
        idle.pop_back();
        return arena;
      }
    }
    const ScopedDenormals kept(denormals);
    auto arena = std::make_unique<oneapi::tbb::task_arena>(threads);
    arena->initialize();
    return arena;
  }

  void give(int threads, Denormals denormals, Arena arena) {
    const std::lock_guard lock(mutex_);
    idle_[{threads, denormals}].push_back(std::move(arena));
  }

 private:
  uint32_t forks_ = fork_count();
  std::mutex mutex_;
  std::map<std::pair<int, Denormals>, std::vector<Arena>> idle_;
};

// Threads may have become scarce since require_threads().
template <class Run>
void run_or_explain(const Run& run) {
  try {
    run();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (!std::string_view(error.what()).starts_with("pthread_create")) throw;
    throw refused_thread(error.what());
  }
}

}  // namespace

struct ThreadPool::State {
  State(int count, Denormals rule) : threads(count), denormals(rule) {
    if (made_after_forks > 0) {
      team.emplace(std::min(threads, oneapi::tbb::info::default_concurrency()), denormals);
    } else {
      require_threads(threads);
    }
    call_before_fork(settle_tbb);
    if (made_after_forks > 0 && !is_usable_here()) return;
    arena = IdleArenas::of_this_process().take(threads, denormals);
  }
  ~State() {
    if (arena) IdleArenas::of_this_process().give(threads, denormals, std::move(arena));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // State that belongs to threads of another process is neither used nor destroyed.
  static void leave_to_parent(std::unique_ptr<State>& state) {
    if (state->made_after_forks == fork_count()) return;
    const State* const left = state.release();
    (void)left;
  }
  static State& of_this_process(std::unique_ptr<State>& state) {
    if (state->made_after_forks != fork_count()) {
      auto made = std::make_unique<State>(state->threads, state->denormals);
      leave_to_parent(state);
      state = std::move(made);
    }
    return *state;
  }

  int threads;
  Denormals denormals;
  uint32_t made_after_forks = fork_count();
  IdleArenas::Arena arena;  // none if oneTBB cannot be used
  // In a forked process, where oneTBB has no threads: its loops, which libraries begin, run on the
  // calling thread there, but still see the number of threads that their kernels were built for.
  std::optional<ThreadTeam> team;
};

ThreadPool::ThreadPool(int threads, Denormals denormals) {
  if (threads < 0 || threads > kMaxThreads) {
    throw Error(ErrorKind::InvalidArgument, "option 'threads'",
                "expected 0 (all cores) to " + std::to_string(kMaxThreads) + ", found " +
                    std::to_string(threads));
  }
  // Respects the affinity mask: a process confined to one core gets one thread.
  if (threads == 0) threads = oneapi::tbb::info::default_concurrency();
  const NoForkSection section;  // arenas are made and destroyed under a lock
  state_ = std::make_unique<State>(threads, denormals);
}

ThreadPool::~ThreadPool() {
  const NoForkSection section;
  State::leave_to_parent(state_);
  state_.reset();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::execute(FunctionRef<void()> body) {
  const NoForkSection section;
  State& state = State::of_this_process(state_);
  const ScopedDenormals kept(state.denormals);
  if (!state.arena) return body();
  run_or_explain([&] { state.arena->execute(body); });
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
  State& state = State::of_this_process(state_);
  const auto run = [&](int64_t begin, int64_t end) {
    const NoForkSection::Part part(true);
    body(begin, end);
  };
  if (state.team) return state.team->parallel_for(count, grain, run);
  run_or_explain([&] {
    state.arena->execute([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(grain)),
          [&](const oneapi::tbb::blocked_range<int64_t>& range) {
            run(range.begin(), range.end());
          });
    });
  });
}

}  // namespace tessera
