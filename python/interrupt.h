// Ctrl-C while a model runs.
#pragma once

#include <csignal>

#include "tessera/tessera.h"

namespace tessera::python {

// While one lives on the process's main thread, Ctrl-C (SIGINT) also ends the run of `executor`
// that is going on. What Python does at Ctrl-C comes as ever, once the interpreter is asked
// (PyErr_CheckSignals); where it does nothing, neither does this. On other threads it does nothing:
// signals are the main thread's.
class RunInterrupt {
 public:
  explicit RunInterrupt(Executor& executor);
  ~RunInterrupt();
  RunInterrupt(const RunInterrupt&) = delete;
  RunInterrupt& operator=(const RunInterrupt&) = delete;

 private:
  bool is_installed_ = false;
};

}  // namespace tessera::python
