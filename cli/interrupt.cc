#include "cli/interrupt.h"

#include <atomic>

namespace tessera::cli {
namespace {

// A handler reaches nothing but what is static.
volatile std::sig_atomic_t was_interrupted = 0;
std::atomic<Executor*> running = nullptr;
static_assert(std::atomic<Executor*>::is_always_lock_free, "as a handler must not wait");

void note(int /*signal*/) {
  was_interrupted = 1;
  if (Executor* const executor = running.load()) executor->cancel();
}

}  // namespace

Interrupt::Interrupt(Executor* executor) {
  was_interrupted = 0;
  running = executor;
  struct sigaction action{};
  action.sa_handler = note;
  // SA_RESETHAND: the next one finds the default again. SA_RESTART: nothing else notices.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, nullptr, &previous_);
  // Whoever started the program to ignore Ctrl-C (nohup) gets that.
  if (previous_.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &previous_, nullptr);
  running = nullptr;
}

bool Interrupt::is_interrupted() const { return was_interrupted != 0; }

}  // namespace tessera::cli
