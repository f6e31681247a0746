// Tries whether tessera-worker starts and answers; for people who look for a fault. worker_bench.h
// measures.
#pragma once

#include <filesystem>
#include <string>

namespace tessera::tuning {

struct WorkerProbe {
  std::string reason;  // why it is of no use; "" if it answers
  double seconds = 0;  // from its start to its answer
};

// Starts `program` without plug-ins and ends it again. Waits for its answer for `max_seconds` at
// most. The calling thread must outlive the process.
WorkerProbe probe_worker(const std::filesystem::path& program, double max_seconds);

}  // namespace tessera::tuning
