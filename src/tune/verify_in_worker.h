// verify_backend() in another process (tessera-worker), so that a plug-in that crashes, hangs or
// ends its process fails the check at work and nothing else. serve_verify.h is its other side.
#pragma once

#include <filesystem>
#include <functional>

#include "verify/verify_backend.h"

namespace tessera::tuning {

struct VerifyWorkerOptions {
  // What is started: tessera-worker. "" means the one that was installed with this program.
  std::filesystem::path program = {};
  // That one call of the plug-in may take.
  double step_timeout_seconds = 60;
  // That the process may write to; 0: nine tenths of what the machine has left.
  int64_t memory_bytes = 0;
  // Told of each step before it is made.
  std::function<void(const verification::VerifyStep& step)> watcher = {};
};

// What verify_backend() finds. Where the process is lost, the step at work fails and another
// process goes on behind its unit; after several losses with one op its other cases are skipped,
// and after many, or some calls that did not come back, all that is left. Throws InvalidArgument
// where there is no such file, and DeviceFailed where the process cannot be started. Call it from a
// thread that outlives it.
verification::VerifiedBackend verify_in_worker(const std::filesystem::path& library,
                                               const verification::VerifyOptions& options,
                                               const VerifyWorkerOptions& worker);

}  // namespace tessera::tuning
