#include "base/threads/fork.h"

#include <pthread.h>

#include <map>
#include <thread>
#include <utility>

#include "base/threads/before_fork.h"

namespace tessera {
namespace {

constexpr std::chrono::microseconds kPoll{50};

std::atomic<uint32_t> forks_before = 0;
std::atomic<uint32_t> forks_in_progress = 0;  // threads of this process that are in fork()
std::atomic<int> threads_inside = 0;          // threads that are in a section

std::atomic<void (*)()> settle_library = nullptr;

thread_local int depth = 0;            // of the sections of this thread
thread_local bool is_counted = false;  // in threads_inside; a Part is not

bool is_other_thread_inside() { return threads_inside > (depth > 0 ? 1 : 0); }

// A thread in a section may wait for a lock of the program that the forking thread holds, such as
// that of an interpreter, so the wait is limited.
void wait_for_sections() {
  ++forks_in_progress;
  const auto end = std::chrono::steady_clock::now() + NoForkSection::kMaxForkWait;
  while (is_other_thread_inside() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
  if (void (*const settle)() = settle_library) settle();
}

void go_on_in_parent() {
  --forks_in_progress;
  forks_in_progress.notify_all();
}

void go_on_in_child() {
  ++forks_before;
  forks_in_progress = 0;
  threads_inside = is_counted ? 1 : 0;
}

const bool kIsRegistered =
    ::pthread_atfork(wait_for_sections, go_on_in_parent, go_on_in_child) == 0;

// Marks in the two lowest bits of a mutex.
constexpr uint32_t kMarks = 3;
constexpr uint32_t kHeld = 1;
constexpr uint32_t kWaitedFor = 2;  // held, and other threads may wait

uint32_t marked(uint32_t mark) { return fork_count() << 2 | mark; }
bool is_held_here(uint32_t state) {
  return (state & kMarks) != 0 && (state & ~kMarks) == marked(0);
}

}  // namespace

void call_before_fork(void (*settle)()) { settle_library = settle; }

uint32_t fork_count() { return forks_before.load(std::memory_order_relaxed); }

void NoForkSection::begin() {
  if (depth++ > 0) return;
  while (true) {
    // wait_for_sections() either sees this thread, or has set what the next line reads.
    ++threads_inside;
    const uint32_t in_progress = forks_in_progress;
    if (in_progress == 0) break;
    --threads_inside;
    forks_in_progress.wait(in_progress);
  }
  is_counted = true;
}

void NoForkSection::end() {
  if (--depth > 0 || !is_counted) return;
  is_counted = false;
  --threads_inside;
}

bool NoForkSection::is_inside() { return depth > 0; }

NoForkSection::Part::Part(bool is_part) : is_part_(is_part && depth == 0) {
  if (is_part_) depth = 1;
}

NoForkSection::Part::~Part() {
  if (is_part_) depth = 0;
}

bool LongHeldMutex::try_lock() {
  uint32_t state = state_;
  return !is_held_here(state) && state_.compare_exchange_strong(state, marked(kHeld));
}

// The mutex of U. Drepper, "Futexes are tricky", section 5, whose state also tells the process.
void LongHeldMutex::lock() {
  if (try_lock()) return;
  while (true) {
    uint32_t state = state_;
    if (!is_held_here(state)) {
      if (state_.compare_exchange_weak(state, marked(kWaitedFor))) return;
      continue;
    }
    if (state == marked(kHeld) && !state_.compare_exchange_weak(state, marked(kWaitedFor))) {
      continue;
    }
    state_.wait(marked(kWaitedFor));
  }
}

void LongHeldMutex::unlock() {
  uint32_t state = state_;
  // A thread that forked while it held the mutex may meet a holder of the new process.
  do {
    if ((state & kMarks) != 0 && !is_held_here(state)) return;
  } while (!state_.compare_exchange_weak(state, 0));
  if ((state & kMarks) == kWaitedFor) state_.notify_one();
}

struct Turn::Turns {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<LongHeldMutex>> of_key;
};

Turn::Turns& Turn::turns() {
  static Turns& all =
      *new Turns;  // never destroyed: a thread may have a turn when the process ends
  return all;
}

Turn::Turn(std::string key) : key_(std::move(key)) {
  {
    Turns& all = turns();
    const ForkSafeLock lock(all.mutex);
    std::shared_ptr<LongHeldMutex>& known = all.of_key[key_];
    if (!known) known = std::make_shared<LongHeldMutex>();
    mutex_ = known;
  }
  mutex_->lock();
}

Turn::~Turn() {
  mutex_->unlock();
  Turns& all = turns();
  const ForkSafeLock lock(all.mutex);
  mutex_.reset();
  const auto known = all.of_key.find(key_);
  if (known != all.of_key.end() && known->second.use_count() == 1) all.of_key.erase(known);
}

}  // namespace tessera
