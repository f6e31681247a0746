// Ctrl-C as a wish to stop early instead of the end of the program.
#pragma once

#include <csignal>

namespace tessera::cli {

// While one lives, the first Ctrl-C (SIGINT) only sets is_interrupted(); a second one ends the
// program as ever. One at a time, on the main thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool is_interrupted() const;

 private:
  struct sigaction previous_{};
};

}  // namespace tessera::cli
