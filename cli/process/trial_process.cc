#include "cli/process/trial_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>

#include "base/process/child_process.h"

namespace tessera::cli {
namespace {

constexpr auto kPollTime = std::chrono::milliseconds(5);
// The exit code unless `work` ends the process itself, with another code or to deceive.
constexpr int kReturned = 83;

[[noreturn]] void run_trial(const std::function<void()>& work, pid_t parent) {
  if (!die_with_parent(parent)) std::_Exit(kReturned);
  const rlimit no_core_dump = {};
  ::setrlimit(RLIMIT_CORE, &no_core_dump);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  try {
    work();
  } catch (const std::exception&) {
    // The caller meets the same error, and reports it.
    std::_Exit(kReturned);
  }
  std::_Exit(kReturned);
}

}  // namespace

std::string explain_failed_trial(const std::function<void()>& work, std::chrono::seconds limit) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return {};
  if (child == 0) run_trial(work, parent);
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return {};
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(child, SIGKILL);
      // A child in an uninterruptible system call is left behind: waiting would never end.
      ::waitpid(child, &status, WNOHANG);
      return "did not return within " + std::to_string(limit.count()) + " s";
    }
    std::this_thread::sleep_for(kPollTime);
  }
  if (WIFSIGNALED(status)) return text(ProcessEnd{.signal = WTERMSIG(status)});
  if (WEXITSTATUS(status) == kReturned) return {};
  return text(ProcessEnd{.exit_code = WEXITSTATUS(status)});
}

}  // namespace tessera::cli
