// A child process that ends before this process does.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_handle.h"

namespace tessera {

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;            // if signal is 0; -1: unknown
  int signal = 0;               // the signal that ended it
  bool is_left_behind = false;  // it was killed and has not ended yet
};

// "ended by signal 11 (segmentation fault)", "ended with exit code 3".
std::string text(const ProcessEnd& end);

// Owns the process and everything that the process starts. For one thread at a time.
class ChildProcess {
 public:
  // The file descriptor of the program's end of the socket.
  static constexpr int kSocket = 3;
  // How long to wait for a killed process to end. It ends later only if it is in a system call that
  // no signal interrupts, such as a read from a disk or a server that does not answer.
  static constexpr std::chrono::milliseconds kKillPatience{5000};
  // waitpid(), or a substitute in tests.
  using WaitFunction = pid_t (*)(pid_t id, int* status, int options);

  // Starts the executable `program` (no PATH search), with the id of this process as its last
  // argument. Its standard input, output and error are /dev/null; its only other descriptor is
  // `socket` as kSocket. No signal is blocked or ignored. It gets its own process group, so that an
  // interrupt from the terminal reaches this program alone. Throws DeviceFailed if it cannot be
  // started. Call it from a thread that outlives the child: see die_with_parent().
  ChildProcess(const std::filesystem::path& program, std::vector<std::string> arguments,
               FileHandle socket, WaitFunction wait_function = ::waitpid);
  // Calls kill().
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  // Waits at most `patience` for its end; nullopt if it is still running.
  std::optional<ProcessEnd> wait(std::chrono::milliseconds patience);
  // Kills the process and its group and waits at most `patience` for its end. A process that has
  // not ended by then is left behind; it ends by itself as soon as it can.
  ProcessEnd kill(std::chrono::milliseconds patience = kKillPatience);

 private:
  pid_t id_ = -1;
  pid_t parent_ = ::getpid();  // a process that was forked from it leaves the child alone
  WaitFunction wait_;
  std::optional<ProcessEnd> end_;
};

// For the child, as its first call: the system kills this process once the thread that started it
// ends. Returns false if `parent`, the last argument of the program, has ended already.
bool die_with_parent(pid_t parent);

// For the child: limits this process to `bytes` more writable memory than it has now; allocations
// beyond that fail. If the machine runs out of memory, this process is killed first. It writes no
// core dump.
void limit_memory(int64_t bytes);

}  // namespace tessera
