// Ctrl-C as a wish to stop early, SIGTERM and SIGHUP as a wish to end soon, instead of the end of
// the program.
#pragma once

#include <array>
#include <csignal>

#include "tessera/tessera.h"

namespace tessera::cli {

// While one lives, the first Ctrl-C (SIGINT) only sets is_interrupted() and ends the run of an
// executor that is going on, which throws Cancelled; a second one ends the program as ever. One at
// a time, on the main thread.
class Interrupt {
 public:
  // `executor`, which must outlive this, is the one whose run ends; null: none.
  explicit Interrupt(Executor* executor = nullptr);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool is_interrupted() const;
  // Whether there was a Ctrl-C since the newest of them began; from any thread.
  static bool was_requested();

 private:
  struct sigaction previous_{};
};

// While one lives, the first SIGTERM or SIGHUP is only noted, so that what was found out can be
// kept and nothing is left behind; a second one ends the program as ever. On the main thread.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Whether one was noted since the program began.
  static bool was_requested();
  // Throws Cancelled where one was.
  static void check();
  // Ends the program by the signal, if one was noted, as whoever waits for it expects.
  static void exit_if_requested();

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace tessera::cli
