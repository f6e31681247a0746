#include "base/process/child_process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/process/message_channel.h"

namespace tessera {
namespace {

using std::chrono::seconds;

// A shell that runs `script`, and everything it writes to its socket until it ends.
struct Shell {
  explicit Shell(const std::string& script) : Shell(script, MessageChannel::make_sockets()) {}
  Shell(const std::string& script, std::pair<FileHandle, FileHandle> sockets)
      : mine(std::move(sockets.first)),
        process("/bin/sh", {"-c", script}, std::move(sockets.second)) {}

  std::string read_line() {
    std::string line;
    char letter = 0;
    while (::recv(mine.get(), &letter, 1, 0) == 1 && letter != '\n') line += letter;
    return line;
  }

  FileHandle mine;
  ChildProcess process;
};

TEST(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(text(*Shell("exit 3").process.wait(seconds(10))), "ended with exit code 3");
  EXPECT_EQ(text(*Shell("kill -SEGV $$").process.wait(seconds(10))),
            "ended by signal 11 (segmentation fault)");
  EXPECT_EQ(text(Shell("sleep 100").process.kill()), "ended by signal 9 (killed)");
}

TEST(ChildProcess, WaitsNoLongerThanAsked) {
  Shell shell("sleep 100");
  EXPECT_FALSE(shell.process.wait(std::chrono::milliseconds(20)).has_value());
}

// Stands for a process that cannot end, such as one in a read from a disk that does not answer.
pid_t wait_in_vain(pid_t /*id*/, int* /*status*/, int /*options*/) { return 0; }

TEST(ChildProcess, OneThatDoesNotEndIsLeftBehind) {
  auto [mine, its] = MessageChannel::make_sockets();
  ChildProcess process("/bin/sh", {"-c", "sleep 100"}, std::move(its), wait_in_vain);
  const auto start = std::chrono::steady_clock::now();
  const ProcessEnd end = process.kill(std::chrono::milliseconds(30));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(4));
  EXPECT_TRUE(end.is_left_behind);
  EXPECT_EQ(text(end), "was killed, has not ended, and was left behind");
  EXPECT_EQ(::waitpid(process.id(), nullptr, 0), process.id());
}

TEST(ChildProcess, HasItsSocketAndNothingElse) {
  // A descriptor without close-on-exec, which a plain spawn would inherit.
  const FileHandle stray(::dup(STDERR_FILENO));
  Shell shell(
      "for number in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$number ] && printf $number; done "
      ">&3;"
      "[ /proc/$$/fd/0 -ef /dev/null ] && echo ' reads nothing' >&3");
  EXPECT_EQ(shell.read_line(), "0123 reads nothing");
}

TEST(ChildProcess, WritesNothingWhereTheUserReads) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Shell("echo loud; echo louder >&2").process.wait(seconds(10))->exit_code, 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ChildProcess, KnowsItsParentAndIsAGroupOfItsOwn) {
  Shell shell("echo $0 >&3; read _ _ _ _ group _ < /proc/$$/stat; echo $group $$ >&3");
  EXPECT_EQ(shell.read_line(), std::to_string(::getpid()));
  const std::string group = std::to_string(shell.process.id());
  EXPECT_EQ(shell.read_line(), group + " " + group);
}

TEST(ChildProcess, TakesWhatItStartedWithIt) {
  int grandchild = 0;
  {
    Shell shell("sleep 100 & echo $! >&3; wait");
    grandchild = std::stoi(shell.read_line());
    EXPECT_EQ(::kill(grandchild, 0), 0);
  }
  // Until init, or the subreaper that inherited it, has reaped it.
  std::string state = "R";
  for (int round = 0; round < 200 && state != "Z" && !state.empty(); ++round) {
    std::ifstream file("/proc/" + std::to_string(grandchild) + "/stat");
    std::string skipped;
    state.clear();
    file >> skipped >> skipped >> state;
    ::usleep(10000);
  }
  EXPECT_TRUE(state.empty() || state == "Z") << state;
}

TEST(ChildProcess, IsNotBlockedByWhatItsParentBlocks) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  Shell shell("kill -TERM $$; exit 0");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(shell.process.wait(seconds(10))->signal, SIGTERM);
}

TEST(ChildProcess, SaysThatThereIsNoSuchProgram) {
  for (const char* program : {"/nowhere/program", "sh"}) {  // the second one is in PATH
    auto [mine, its] = MessageChannel::make_sockets();
    EXPECT_THAT(error_of(ErrorKind::DeviceFailed,
                         [&] { const ChildProcess process(program, {}, std::move(its)); }),
                HasSubstr(program));
  }
}

TEST(ChildProcess, KnowsAParentThatIsGone) {
  // In a process of its own, which would otherwise end with the thread that runs this test.
  EXPECT_EXIT(std::_Exit(die_with_parent(::getppid()) && !die_with_parent(1 << 30) ? 0 : 1),
              testing::ExitedWithCode(0), "");
}

TEST(ChildProcessDeathTest, HasNoMoreMemoryThanItsLimit) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator ends the process where there is no memory";
#endif
  constexpr int64_t kLimitBytes = int64_t{256} << 20;
  const auto allocate = [] {
    limit_memory(kLimitBytes);
    const std::unique_ptr<char[]> half(new (std::nothrow) char[kLimitBytes / 2]);
    const std::unique_ptr<char[]> whole(new (std::nothrow) char[kLimitBytes]);
    std::_Exit(half != nullptr && whole == nullptr ? 0 : 1);
  };
  EXPECT_EXIT(allocate(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
