// A bench that measures in its own process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "microbench/bench.h"
#include "ops/registry.h"

namespace tessera::tuning {

// The current work of a bench; each stage has its own time limit. Prepare: everything except
// building and running, such as asking plug-ins, packing, converting.
enum class BenchStage : uint8_t { Prepare, Build, Run };

// Called at the beginning of each stage; for Build with the seconds that the backend announced,
// else with 0.
using StageWatcher = std::function<void(BenchStage stage, double announced_seconds)>;

// Owns a pool of all threads, a pool of one thread, and the buffers of measurements.
class GroupBench final : public Bench {
 public:
  // `threads` is the size of the larger pool. `registry` must outlive it.
  GroupBench(std::vector<std::shared_ptr<const Plugin>> plugins, const ops::Registry& registry,
             int threads);
  ~GroupBench() override;

  // For a process that only measures: reports the stages, and runs checks between guard pages,
  // where a kernel that touches them ends the process. The tensors of all groups must be between
  // guard pages too, as unpack_case() places them.
  void guard(StageWatcher watcher);

  void load(const GroupCase& group) override;
  // Provides a candidate of the graph from which the group was extracted, so that build() need not
  // ask the plug-in, which may offer less for the group alone. Call after load(). `whole` is that
  // graph.
  void offer(const Candidate& candidate, const Graph& whole);

  Outcome build(const CandidateId& id) override;
  Checked check(const CandidateId& id) override;
  Outcome run(const CandidateId& id, Weights weights, int runs) override;
  void drop(const CandidateId& id) override;
  Outcome convert(const ConversionKey& key, int runs) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::tuning
