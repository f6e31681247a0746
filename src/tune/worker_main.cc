// tessera-worker: the process in which libraries build and run what is measured. Only Tessera
// itself starts it; see worker_bench.h.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/child_process.h"
#include "tune/bench_messages.h"
#include "tune/serve_bench.h"

namespace {

bool is_socket(int descriptor) {
  struct stat found = {};
  return ::fstat(descriptor, &found) == 0 && S_ISSOCK(found.st_mode);
}

}  // namespace

int main(int count, char** arguments) {
  const int parent = count == 2 ? std::atoi(arguments[1]) : 0;
  if (parent <= 0 || !is_socket(tessera::ChildProcess::kSocket)) {
    std::fputs(
        "tessera-worker measures what libraries can do, so that one that crashes harms nothing "
        "else. Tessera starts it when it tunes; it is of no use on its own.\n",
        stderr);
    return 2;
  }
  if (!tessera::die_with_parent(parent)) return 1;
  // What libraries start has no business with it.
  ::fcntl(tessera::ChildProcess::kSocket, F_SETFD, FD_CLOEXEC);
  try {
    tessera::tuning::serve_bench(
        tessera::MessageChannel(tessera::FileHandle(tessera::ChildProcess::kSocket),
                                tessera::tuning::kMostRequestBytes, true));
  } catch (const std::exception&) {
    std::_Exit(1);
  }
  // Without the exit handlers of libraries, which may take their time.
  std::_Exit(0);
}
