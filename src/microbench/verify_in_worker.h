// Runs verify_backend() in another process (tessera-worker), so that a plug-in that crashes, hangs
// or exits fails only the current check. worker_main.cc is the other side.
#pragma once

#include <filesystem>
#include <functional>

#include "verify/verify_backend.h"

namespace tessera::tuning {

struct VerifyWorkerOptions {
  // The path of tessera-worker; "" means the one installed with this program.
  std::filesystem::path program = {};
  // Time limit for one call of the plug-in.
  double step_timeout_seconds = 60;
  // Limit of the process's writable memory; 0: nine tenths of the available memory.
  int64_t memory_bytes = 0;
  // Called with each step before it is run.
  std::function<void(const verification::VerifyStep& step)> watcher = {};
};

// The result of verify_backend(). If the process is lost, the current step fails, and another
// process continues after its unit. After several losses with one op, its other cases are skipped;
// after many losses, or some calls that did not return, all remaining units are skipped. Throws
// InvalidArgument if there is no such file, and DeviceFailed if the process cannot be started. The
// calling thread must outlive the process.
verification::VerifiedBackend verify_in_worker(const std::filesystem::path& library,
                                               const verification::VerifyOptions& options,
                                               const VerifyWorkerOptions& worker);

}  // namespace tessera::tuning
