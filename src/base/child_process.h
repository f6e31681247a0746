// A program started beside this one, which ends before this one does.
#pragma once

#include <sys/types.h>

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
  int exit_code = 0;  // where signal is 0; -1: nobody can tell any more
  int signal = 0;     // that ended it
};

// "ended by signal 11 (segmentation fault)", "ended with exit code 3".
std::string text(const ProcessEnd& end);

// Owns the process and all that it starts in turn; for one thread at a time.
class ChildProcess {
 public:
  // The descriptor under which the program finds its end of the socket.
  static constexpr int kSocket = 3;

  // Starts the file `program`, not searched for, with the number of this process as its last
  // argument. It has /dev/null for input, output and errors, `socket` as kSocket, and no other
  // descriptor; no signal is blocked or ignored; it is a process group of its own, so that an
  // interrupt from the terminal is for this program alone to answer. Throws DeviceFailed where it
  // cannot be started. Call it from a thread that outlives the child: see die_with_parent().
  ChildProcess(const std::filesystem::path& program, std::vector<std::string> arguments,
               FileHandle socket);
  // Kills it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  // Waits that long for its end; nullopt where it goes on.
  std::optional<ProcessEnd> wait(std::chrono::milliseconds patience);
  // Kills it and its group.
  ProcessEnd kill();

 private:
  pid_t id_ = -1;
  std::optional<ProcessEnd> end_;
};

// For the child, first of all: lets the system kill this process once the thread that started it is
// gone, and gives false where `parent`, as the last argument said, already is.
bool die_with_parent(pid_t parent);

// For the child: this process may write to `bytes` more memory than now, beyond which allocations
// fail; where the machine runs out all the same, it is the first to be killed; it leaves no core.
void limit_memory(int64_t bytes);

}  // namespace tessera
