#include "cli/interrupt.h"

#include <atomic>

namespace tessera::cli {
namespace {

// A handler reaches nothing but what is static.
std::atomic<bool> was_interrupted = false;
std::atomic<Executor*> running = nullptr;
static_assert(std::atomic<Executor*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "as a handler must not wait");

void note(int /*signal*/) {
  was_interrupted = true;
  if (Executor* const executor = running.load()) executor->cancel();
}

}  // namespace

Interrupt::Interrupt(Executor* executor) {
  was_interrupted = false;
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

bool Interrupt::is_interrupted() const { return was_interrupted; }
bool Interrupt::was_asked() { return was_interrupted; }

}  // namespace tessera::cli
