#include "base/process/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "tessera/error.h"

namespace tessera {
namespace {

// Attributes of the child that hold from its first instruction on.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", O_RDWR, 0);
    }
    ::posix_spawn_file_actions_adddup2(&actions_, socket, ChildProcess::kSocket);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, ChildProcess::kSocket + 1);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
  posix_spawnattr_t attributes_ = {};
};

ProcessEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

}  // namespace

std::string text(const ProcessEnd& end) {
  if (end.is_left_behind) return "was killed, has not ended, and was left behind";
  if (end.signal == 0 && end.exit_code < 0) return "ended";
  if (end.signal == 0) return "ended with exit code " + std::to_string(end.exit_code);
  std::string name = ::strsignal(end.signal);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return "ended by signal " + std::to_string(end.signal) + " (" + name + ")";
}

ChildProcess::ChildProcess(const std::filesystem::path& program, std::vector<std::string> arguments,
                           FileHandle socket, WaitFunction wait_function)
    : wait_(wait_function) {
  arguments.insert(arguments.begin(), program.string());
  arguments.push_back(std::to_string(::getpid()));
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // A descriptor above all those that the child's file actions write to.
  const FileHandle source(::fcntl(socket.get(), F_DUPFD_CLOEXEC, ChildProcess::kSocket + 1));
  const SpawnSettings settings(source.get());
  const int failure = ::posix_spawn(&id_, program.c_str(), settings.actions(),
                                    settings.attributes(), pointers.data(), environ);
  if (failure != 0) {
    id_ = -1;
    throw Error(ErrorKind::DeviceFailed, "program '" + program.string() + "'",
                std::string("could not be started: ") + std::strerror(failure));
  }
}

ChildProcess::~ChildProcess() {
  if (id_ > 0 && parent_ == ::getpid()) kill();
}

std::optional<ProcessEnd> ChildProcess::wait(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!end_) {
    int status = 0;
    const pid_t found = wait_(id_, &status, WNOHANG);
    if (found == id_) {
      end_ = end_of(status);
    } else if (found < 0 && errno != EINTR) {
      // The embedding program has waited for all of its children, or ignores SIGCHLD.
      end_ = ProcessEnd{.exit_code = -1};
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return end_;
}

ProcessEnd ChildProcess::kill(std::chrono::milliseconds patience) {
  // Once it was waited for, another process may have its id.
  if (!end_) {
    ::kill(-id_, SIGKILL);
    ::kill(id_, SIGKILL);
  }
  // If nobody waits for the child any more, the system removes it when this process ends.
  if (!wait(patience)) end_ = ProcessEnd{.exit_code = -1, .is_left_behind = true};
  return *end_;
}

bool die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before the line above.
  return ::getppid() == parent;
}

void limit_memory(int64_t bytes) {
  rlimit core = {};
  ::setrlimit(RLIMIT_CORE, &core);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  // RLIMIT_DATA counts private writable memory only. RLIMIT_AS would count guard pages and mapped
  // files too.
  std::ifstream file("/proc/self/statm");
  int64_t pages[6] = {};
  for (int64_t& number : pages) file >> number;
  if (!file) return;
  rlimit limit = {};
  ::getrlimit(RLIMIT_DATA, &limit);
  const auto max_bytes = static_cast<rlim_t>(pages[5] * ::sysconf(_SC_PAGESIZE) + bytes);
  limit.rlim_cur = std::min(limit.rlim_max, max_bytes);
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace tessera
