// A bench that measures in another process, so that a library that hangs, crashes or overwrites
// memory loses only its candidate. worker_main.cc is the other side; see
// docs/decisions/0010-measuring-in-another-process.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "backend/plugin.h"
#include "base/errors/log.h"
#include "base/process/child_process.h"
#include "microbench/bench.h"

namespace tessera::tuning {

struct WorkerOptions {
  // The path of tessera-worker; "" means the one installed with this program.
  std::filesystem::path program;
  int threads = 1;  // of the larger pool
  // A single run that takes longer ends its process, and the candidate is refused.
  double candidate_timeout_seconds = 5;
  // The time limit for building, extended if the backend announced more: see build_limit().
  double build_timeout_seconds = kBuildSeconds;
  // Limit of the process's writable memory; 0: nine tenths of the available memory.
  int64_t memory_bytes = 0;
  // Keeps the blobs of plug-ins in the worker, which finds them here (shared_blobs.h); may be null.
  std::shared_ptr<HostServices> services = nullptr;
  // Receives warnings about processes that could not be ended; may be null.
  const Log* log = nullptr;
  // How long a killed process may take to end.
  std::chrono::milliseconds kill_patience = ChildProcess::kKillPatience;
  // waitpid(), or a substitute in tests.
  ChildProcess::WaitFunction wait = ::waitpid;
};

// Starts its process immediately, and a new one whenever a process is lost. The group is then
// loaded again, and built candidates are rebuilt when they are next needed. A crash is attributed
// to the current candidate only if the process has worked on no other candidate. Keep it on one
// thread: when that thread ends, the system ends the process.
class WorkerBench final : public Bench {
 public:
  // Throws DeviceFailed if the process cannot be started (or, later, restarted) or cannot open one
  // of the plug-ins.
  WorkerBench(std::span<const std::shared_ptr<const Plugin>> plugins, WorkerOptions options);
  ~WorkerBench() override;

  void load(const GroupCase& group) override;
  Outcome build(const CandidateId& id) override;
  Checked check(const CandidateId& id) override;
  Outcome run(const CandidateId& id, Weights weights, int runs) override;
  void drop(const CandidateId& id) override;
  Outcome convert(const ConversionKey& key, int runs) override;
  int64_t peak_bytes() override;

  // The id of the current process; for tests.
  int process_id() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Null, with a warning, if the process cannot be started: then this process measures. `log` must
// outlive the result.
std::unique_ptr<WorkerBench> start_worker(std::span<const std::shared_ptr<const Plugin>> plugins,
                                          WorkerOptions options, const Log& log);

// Whether tessera-worker starts and answers; for people who look for a fault.
struct WorkerProbe {
  std::string reason;  // why it is of no use; "" if it answers
  double seconds = 0;  // from its start to its answer
};

// Starts `program` without plug-ins and ends it again. Waits for its answer for `max_seconds` at
// most. The calling thread must outlive the process.
WorkerProbe probe_worker(const std::filesystem::path& program, double max_seconds);

}  // namespace tessera::tuning
