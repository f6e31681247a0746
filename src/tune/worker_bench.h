// The bench that measures in another process, so that a library which hangs, crashes or overwrites
// memory loses its candidate and nothing else. serve_bench.h is its other side; see
// docs/decisions/0010-measuring-in-another-process.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "backend/plugin.h"
#include "base/child_process.h"
#include "base/log.h"
#include "tune/bench.h"

namespace tessera::tuning {

struct WorkerOptions {
  // What is started: tessera-worker. "" means the one that was installed with this program.
  std::filesystem::path program;
  int threads = 1;  // of the larger pool
  // A single run that takes longer ends its process, and the candidate is out.
  double candidate_timeout_seconds = 5;
  // The same for building it, or longer where the backend announced that: see build_limit().
  double build_timeout_seconds = kBuildSeconds;
  // That the process may write to; 0: nine tenths of what the machine has left.
  int64_t memory_bytes = 0;
  // Told of a process that could not be ended; null: nobody.
  const Log* log = nullptr;
  // How long a process that was killed may take to end.
  std::chrono::milliseconds kill_patience = ChildProcess::kKillPatience;
  // waitpid(), or what a test has in its place.
  ChildProcess::WaitFunction wait = ::waitpid;
};

// Starts its process at once, and a new one whenever that is lost. The group is then loaded again,
// and candidates that were built are built again when they are next needed; a crash is laid to the
// candidate at work only if it happens in a process that has worked on nothing else. Keep it on one
// thread: when that ends, the system ends the process.
class WorkerBench final : public Bench {
 public:
  // Throws DeviceFailed where the process cannot be started (or, later, not again), or one of the
  // plug-ins cannot be opened in it.
  WorkerBench(std::span<const std::shared_ptr<const Plugin>> plugins, WorkerOptions options);
  ~WorkerBench() override;

  void load(const GroupCase& group) override;
  Outcome build(const CandidateKey& key) override;
  Checked check(const CandidateKey& key) override;
  Outcome run_once(const CandidateKey& key, Weights weights) override;
  void drop(const CandidateKey& key) override;
  Outcome convert_once(const ConversionKey& key) override;
  int64_t peak_bytes() override;

  // Of the process at work; for tests.
  int process_id() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Null, with a warning, where the process cannot be started: what is measured is then measured in
// this process. `log` outlives it.
std::unique_ptr<WorkerBench> start_worker(std::span<const std::shared_ptr<const Plugin>> plugins,
                                          WorkerOptions options, const Log& log);

}  // namespace tessera::tuning
