#include "cli/interrupt.h"

namespace tessera::cli {
namespace {

// A handler reaches nothing but what is static.
volatile std::sig_atomic_t was_interrupted = 0;

void note(int /*signal*/) { was_interrupted = 1; }

}  // namespace

Interrupt::Interrupt() {
  was_interrupted = 0;
  struct sigaction action{};
  action.sa_handler = note;
  // SA_RESETHAND: the next one finds the default again. SA_RESTART: nothing else notices.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, nullptr, &previous_);
  // Whoever started the program to ignore Ctrl-C (nohup) gets that.
  if (previous_.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &previous_, nullptr); }

bool Interrupt::is_interrupted() const { return was_interrupted != 0; }

}  // namespace tessera::cli
