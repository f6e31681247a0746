// Ctrl-C while a model runs.
#pragma once

#include <array>
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

// While one lives on the process's main thread, the first SIGTERM or SIGHUP is only noted where it
// would end the process; it is raised again when this goes. A second one ends the process as ever.
// On other threads it does nothing.
class BindSignals {
 public:
  BindSignals();
  ~BindSignals();
  BindSignals(const BindSignals&) = delete;
  BindSignals& operator=(const BindSignals&) = delete;

  // Whether one was noted.
  bool is_asked_to_end() const;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP};
  void restore();
  void end_process_if_asked();

  bool is_installed_ = false;
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace tessera::python
