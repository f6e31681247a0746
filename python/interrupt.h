// Ctrl-C while a model runs.
#pragma once

#include <array>
#include <csignal>

#include "tessera/tessera.h"

namespace tessera::python {

// Whether the calling thread is the main one of the process, on which Python handles signals.
bool is_main_thread();

// The number of forks, since the first call, on the way from that process to this one. A thread of
// another number does not exist in this process.
int fork_count();

// While an object of this class exists on the main thread of the process, Ctrl-C (SIGINT) also
// cancels the current run of `executor`. Python still handles Ctrl-C as before, when the
// interpreter checks for signals (PyErr_CheckSignals). The class does nothing if SIGINT has no
// handler; and on other threads, because Python handles signals on the main thread.
class RunInterrupt {
 public:
  explicit RunInterrupt(Executor& executor);
  ~RunInterrupt();
  RunInterrupt(const RunInterrupt&) = delete;
  RunInterrupt& operator=(const RunInterrupt&) = delete;

 private:
  bool is_installed_ = false;
};

// While an object of this class exists on the main thread of the process, the first SIGTERM or
// SIGHUP that would end the process is only recorded; the destructor raises it again. A second one
// ends the process as usual. On other threads the class does nothing.
class BindSignals {
 public:
  BindSignals();
  ~BindSignals();
  BindSignals(const BindSignals&) = delete;
  BindSignals& operator=(const BindSignals&) = delete;

  // Whether a signal was recorded since the newest object was made. May be called on any thread.
  static bool is_stop_requested();

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP};
  void restore();
  void end_process_if_asked();

  bool is_installed_ = false;
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace tessera::python
