// A program started beside this one, which ends before this one does.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file_handle.h"

namespace tessera {

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;            // where signal is 0; -1: nobody can tell any more
  int signal = 0;               // that ended it
  bool is_left_behind = false;  // it was killed and has not ended yet
};

// "ended by signal 11 (segmentation fault)", "ended with exit code 3".
std::string text(const ProcessEnd& end);

// Owns the process and all that it starts in turn; for one thread at a time.
class ChildProcess {
 public:
  // The descriptor under which the program finds its end of the socket.
  static constexpr int kSocket = 3;
  // How long a killed process may take to end. It takes longer only in a call to the system that
  // no signal interrupts, such as a read from a disk or a server that does not answer.
  static constexpr std::chrono::milliseconds kKillPatience{5000};
  // waitpid(), or what a test has in its place.
  using WaitFunction = pid_t (*)(pid_t id, int* status, int options);

  // Starts the file `program`, not searched for, with the number of this process as its last
  // argument. It has /dev/null for input, output and errors, `socket` as kSocket, and no other
  // descriptor; no signal is blocked or ignored; it is a process group of its own, so that an
  // interrupt from the terminal is for this program alone to answer. Throws DeviceFailed where it
  // cannot be started. Call it from a thread that outlives the child: see die_with_parent().
  ChildProcess(const std::filesystem::path& program, std::vector<std::string> arguments,
               FileHandle socket, WaitFunction wait = ::waitpid);
  // Kills it, as kill() does.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  // Waits that long for its end; nullopt where it goes on.
  std::optional<ProcessEnd> wait(std::chrono::milliseconds patience);
  // Kills it and its group. Waits for its end, `patience` at most: a process that has not ended by
  // then is left behind, and ends by itself as soon as it can.
  ProcessEnd kill(std::chrono::milliseconds patience = kKillPatience);

 private:
  pid_t id_ = -1;
  WaitFunction wait_;
  std::optional<ProcessEnd> end_;
};

// For the child, first of all: lets the system kill this process once the thread that started it is
// gone, and gives false where `parent`, as the last argument said, already is.
bool die_with_parent(pid_t parent);

// For the child: this process may write to `bytes` more memory than now, beyond which allocations
// fail; where the machine runs out all the same, it is the first to be killed; it leaves no core.
void limit_memory(int64_t bytes);

}  // namespace tessera
