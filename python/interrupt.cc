#include "python/interrupt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace tessera::python {
namespace {

// A handler reaches nothing but what is static.
std::atomic<Executor*> running = nullptr;
static_assert(std::atomic<Executor*>::is_always_lock_free, "as a handler must not wait");
struct sigaction previous;

void end_run(int signal, siginfo_t* origin, void* context) {
  if (Executor* const executor = running.load()) executor->cancel();
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, origin, context);
  } else {
    previous.sa_handler(signal);
  }
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

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

}  // namespace tessera::python
