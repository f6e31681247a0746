#include "cli/process/interrupt.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace tessera::cli {
namespace {

// A signal handler can access only static variables.
std::atomic<bool> was_interrupted = false;
std::atomic<Executor*> running = nullptr;
std::atomic<int> stop_signal = 0;  // the signal
static_assert(std::atomic<Executor*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "as a handler must not wait");

void note(int /*signal*/) {
  was_interrupted = true;
  if (Executor* const executor = running.load()) executor->cancel();
}

void note_end(int signal) { stop_signal = signal; }

}  // namespace

Interrupt::Interrupt(Executor* executor) {
  was_interrupted = false;
  running = executor;
  struct sigaction action{};
  action.sa_handler = note;
  // SA_RESETHAND: a second signal gets the default handler. SA_RESTART: system calls are not
  // interrupted.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, nullptr, &previous_);
  // If the caller made the program ignore Ctrl-C (nohup), it goes on ignoring it.
  if (previous_.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &previous_, nullptr);
  running = nullptr;
}

bool Interrupt::is_interrupted() const { return was_interrupted; }
bool Interrupt::was_requested() { return was_interrupted; }

Termination::Termination() {
  struct sigaction action{};
  action.sa_handler = note_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (size_t index = 0; index < kSignals.size(); ++index) {
    sigaction(kSignals[index], nullptr, &previous_[index]);
    // If the caller made the program ignore these signals (nohup), it goes on ignoring them.
    if (previous_[index].sa_handler == SIG_DFL) sigaction(kSignals[index], &action, nullptr);
  }
}

Termination::~Termination() {
  for (size_t index = 0; index < kSignals.size(); ++index) {
    sigaction(kSignals[index], &previous_[index], nullptr);
  }
}

bool Termination::was_requested() { return stop_signal != 0; }

void Termination::check() {
  if (!was_requested()) return;
  throw Error(ErrorKind::Cancelled, "signal " + std::to_string(stop_signal),
              "the program was asked to end");
}

void Termination::exit_if_requested() {
  const int signal = stop_signal;
  if (signal == 0) return;
  std::fflush(stdout);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  std::raise(signal);
}

}  // namespace tessera::cli
