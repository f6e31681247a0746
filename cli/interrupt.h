// Ctrl-C as a wish to stop early instead of the end of the program.
#pragma once

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
  static bool was_asked();

 private:
  struct sigaction previous_{};
};

}  // namespace tessera::cli
