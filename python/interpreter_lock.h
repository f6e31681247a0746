// The lock of the interpreter, also while the interpreter ends.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace tessera::python {

// Whether this thread has the interpreter's lock.
bool has_interpreter_lock();

// Releases the interpreter's lock, which the thread must hold, during its lifetime. Replaces
// nb::gil_scoped_release, whose destructor ends the process if the interpreter has begun to end:
// Python then ends the thread by unwinding its stack, which no destructor permits. Here, such a
// thread sleeps until the process has ended.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the interpreter's lock during its lifetime, on any thread. Replaces nb::gil_scoped_acquire,
// for the same reason, and because PyGILState_Ensure() makes a thread known to the interpreter
// without its lock. If a process is forked at that moment, Python 3.11 waits for ever in the new
// process: a thread that does not exist there holds a mutex of the interpreter.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
  PyThreadState* own_ = nullptr;  // of a thread that the interpreter did not know
};

// Keeps an array of another library alive. The last owner may be destroyed on a thread that does
// not hold the interpreter's lock.
template <class Array>
std::shared_ptr<void> kept(Array array) {
  return {new Array(std::move(array)), [](void* held) {
            const Locked lock;
            delete static_cast<Array*>(held);
          }};
}

// Makes the interpreter, when it ends, wait a moment for the work of other threads, and then keep
// these threads out; and prevents that a thread becomes known to it during a fork. Call it once,
// when the module is made.
void watch_threads();

}  // namespace tessera::python
