// tessera-worker: the process in which measured libraries build and run kernels, and in which
// plug-ins are verified. Only Tessera starts it; see worker_bench.h and verify_in_worker.h.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/child_process.h"
#include "microbench/bench_messages.h"
#include "microbench/serve_bench.h"
#include "microbench/serve_verify.h"
#include "microbench/verify_messages.h"

namespace {

using tessera::tuning::kVerifyArgument;

// Freed memory up to this size stays with the process, because every candidate needs buffers of
// about the same sizes, and pages that come from the system anew are expensive.
constexpr int kKeptBytes = 1 << 25;

bool is_socket(int descriptor) {
  struct stat found = {};
  return ::fstat(descriptor, &found) == 0 && S_ISSOCK(found.st_mode);
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_to_verify = count == 3 && std::strcmp(arguments[1], kVerifyArgument) == 0;
  const int parent = count == 2 || is_to_verify ? std::atoi(arguments[count - 1]) : 0;
  if (parent <= 0 || !is_socket(tessera::ChildProcess::kSocket)) {
    std::fputs(
        "tessera-worker runs and times kernels in a process of its own, so that a library that "
        "crashes harms nothing else. Tessera starts it when it tunes, or verifies a plug-in. If a "
        "user starts it, it does nothing.\n",
        stderr);
    return 2;
  }
  if (!tessera::die_with_parent(parent)) return 1;
  // Child processes of libraries must not inherit the socket.
  ::fcntl(tessera::ChildProcess::kSocket, F_SETFD, FD_CLOEXEC);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  try {
    tessera::MessageChannel channel(tessera::FileHandle(tessera::ChildProcess::kSocket),
                                    tessera::tuning::kMaxRequestBytes, true);
    if (is_to_verify) {
      tessera::tuning::serve_verify(std::move(channel));
    } else {
      tessera::tuning::serve_bench(std::move(channel));
    }
  } catch (...) {
    std::_Exit(1);
  }
  // Skips exit handlers of libraries, which may take long.
  std::_Exit(0);
}
