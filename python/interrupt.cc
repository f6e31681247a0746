#include "python/interrupt.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace tessera::python {
namespace {

// A signal handler can only reach static variables.
std::atomic<Executor*> running = nullptr;
static_assert(std::atomic<Executor*>::is_always_lock_free, "as a handler must not wait");
struct sigaction previous;
std::atomic<int> stop_signal = 0;  // number of the signal; 0: none

void note_end(int signal) { stop_signal = signal; }

void end_run(int signal, siginfo_t* origin, void* context) {
  if (Executor* const executor = running.load()) executor->cancel();
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, origin, context);
  } else {
    previous.sa_handler(signal);
  }
}

std::atomic<int> forks = 0;

}  // namespace

int fork_count() {
  [[maybe_unused]] static const int kIsRegistered =
      pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return forks;
}

// Remembers the answer for each thread, because the two calls would be a tenth of a small model's
// run. A fork makes the thread that forks the main one of the new process.
bool is_main_thread() {
  thread_local int asked_at = -1;
  thread_local bool is_main = false;
  if (const int now = fork_count(); asked_at != now) {
    asked_at = now;
    is_main = syscall(SYS_gettid) == getpid();
  }
  return is_main;
}

RunInterrupt::RunInterrupt(Executor& executor) {
  if (!is_main_thread()) return;
  struct sigaction present{};
  sigaction(SIGINT, nullptr, &present);
  const bool has_function = (present.sa_flags & SA_SIGINFO) != 0 ||
                            (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN);
  if (!has_function) return;
  previous = present;
  running = &executor;
  struct sigaction action = present;
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = end_run;
  is_installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

RunInterrupt::~RunInterrupt() {
  if (!is_installed_) return;
  sigaction(SIGINT, &previous, nullptr);
  running = nullptr;
}

BindSignals::BindSignals() {
  if (!is_main_thread()) return;
  stop_signal = 0;
  is_installed_ = true;
  struct sigaction action{};
  action.sa_handler = note_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (size_t index = 0; index < kSignals.size(); ++index) {
    sigaction(kSignals[index], nullptr, &previous_[index]);
    // Signals that Python code handles or ignores are left alone.
    const bool ends_process =
        (previous_[index].sa_flags & SA_SIGINFO) == 0 && previous_[index].sa_handler == SIG_DFL;
    if (ends_process) sigaction(kSignals[index], &action, nullptr);
  }
}

BindSignals::~BindSignals() {
  end_process_if_asked();
  restore();
}

void BindSignals::restore() {
  if (!std::exchange(is_installed_, false)) return;
  for (size_t index = 0; index < kSignals.size(); ++index) {
    sigaction(kSignals[index], &previous_[index], nullptr);
  }
}

bool BindSignals::is_stop_requested() { return stop_signal != 0; }

void BindSignals::end_process_if_asked() {
  if (!is_installed_ || !is_stop_requested()) return;
  restore();
  std::raise(stop_signal);
}

}  // namespace tessera::python
