#include "python/interpreter_lock.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace tessera::python {
namespace {

using Clock = std::chrono::steady_clock;

// The longest time that the end of the interpreter waits. Work that takes longer is still running
// when the process frees its static variables.
constexpr std::chrono::seconds kMaxWait{2};
constexpr std::chrono::milliseconds kEndPoll{1};

// An interpreter ends once in a process, and threads of any module's objects may be at work, so
// these belong to the process.
std::atomic<int> at_work = 0;    // threads that are in the lifetime of an Unlocked
std::atomic<int> sleeping = 0;   // of these, the ones that wait for the end of the process
std::atomic<int> returning = 0;  // threads that are taking the lock or have just given it back
std::atomic<bool> is_ending = false;
std::atomic<std::thread::id> ending_thread;

// Held while a thread becomes known or unknown to the interpreter, and during forks. Nobody waits
// for anything else with it.
std::mutex changing_threads;
PyInterpreterState* interpreter = nullptr;

// Whether this thread is one of `at_work`; others, such as those of a library, are not waited for.
thread_local bool is_at_work = false;

bool must_stay_out() { return is_ending && ending_thread.load() != std::this_thread::get_id(); }

[[noreturn]] void sleep_until_the_end() {
  if (is_at_work) ++sleeping;
  while (true) pause();
}

// Calls `take`, which takes the interpreter's lock, unless the interpreter has begun to end.
template <class Take>
void take_lock(const Take& take) {
  // wait_for_others() either sees this thread, or has already set `is_ending`.
  ++returning;
  if (must_stay_out()) {
    --returning;
    sleep_until_the_end();
  }
  take();
  --returning;
}

void wait_for_others() {
  // Objects that other threads hold cannot be freed any more. This thread may have no frame here.
  const nb::object frames = nb::module_::import_("sys").attr("_current_frames")();
  frames.attr("pop")(nb::module_::import_("_thread").attr("get_ident")(), nb::none());
  if (nb::len(frames) > 0) nb::set_leak_warnings(false);
  const nb::gil_scoped_release unlocked;
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const Clock::time_point end = Clock::now() + kMaxWait;
  while ((returning > 0 || at_work > sleeping) && Clock::now() < end) {
    std::this_thread::sleep_for(kEndPoll);
  }
}

}  // namespace

bool has_interpreter_lock() {
#ifdef Py_LIMITED_API
  // The stable interface, which begins with 3.12 here, has no function that tells this. From 3.12
  // on, each thread knows its own state, which has this dictionary; without the lock there is none.
  return PyThreadState_GetDict() != nullptr;
#else
  return PyGILState_Check() == 1;
#endif
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  ++at_work;
  is_at_work = true;
  if (must_stay_out()) sleep_until_the_end();
}

Unlocked::~Unlocked() {
  take_lock([&] { PyEval_RestoreThread(state_); });
  is_at_work = false;
  --at_work;
}

Locked::Locked() {
  // A thread that has the lock must not sleep.
  if (has_interpreter_lock()) {
    state_ = PyGILState_Ensure();
    return;
  }
  take_lock([&] {
    if (PyGILState_GetThisThreadState() != nullptr) {
      state_ = PyGILState_Ensure();
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(changing_threads);
      own_ = PyThreadState_New(interpreter);
    }
    PyEval_AcquireThread(own_);
  });
}

Locked::~Locked() {
  if (own_ == nullptr) {
    PyGILState_Release(state_);
    return;
  }
  PyThreadState_Clear(own_);
  // The interpreter must not end before it has forgotten this thread.
  ++returning;
  PyEval_ReleaseThread(own_);
  {
    const std::lock_guard<std::mutex> lock(changing_threads);
    PyThreadState_Delete(own_);
  }
  --returning;
}

void watch_threads() {
  interpreter = PyInterpreterState_Get();
  pthread_atfork([] { changing_threads.lock(); }, [] { changing_threads.unlock(); },
                 [] {
                   changing_threads.unlock();
                   // A new process has only the thread that made it. Objects of other threads are
                   // never freed there.
                   at_work = returning = sleeping = 0;
                   nb::set_leak_warnings(false);
                 });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&wait_for_others));
}

}  // namespace tessera::python
