// Handles Ctrl-C as a request to stop early, and SIGTERM and SIGHUP as requests to exit soon,
// instead of terminating the program immediately.
#pragma once

#include <array>
#include <csignal>

#include "tessera/tessera.h"

namespace tessera::cli {

// While an Interrupt exists, the first Ctrl-C (SIGINT) only sets is_interrupted() and cancels the
// current run of an executor, which throws Cancelled. A second Ctrl-C terminates the program as
// usual. Only one Interrupt may exist at a time. Use it on the main thread.
class Interrupt {
 public:
  // Ctrl-C cancels runs of `executor`, which must outlive this object; null: no runs.
  explicit Interrupt(Executor* executor = nullptr);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool is_interrupted() const;
  // Whether Ctrl-C was pressed since the newest Interrupt was constructed. Thread-safe.
  static bool was_requested();

 private:
  struct sigaction previous_{};
};

// While a Termination exists, the first SIGTERM or SIGHUP is only recorded, so that the program can
// save its results and remove its temporary files. A second signal terminates the program as usual.
// Use it on the main thread.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Whether a signal was recorded since the program began.
  static bool was_requested();
  // Throws Cancelled if a signal was recorded.
  static void check();
  // Terminates the program by the recorded signal, if there is one, so that the parent process sees
  // the expected status.
  static void exit_if_requested();

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace tessera::cli
