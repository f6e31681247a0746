// The bench that measures in its own process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "ops/registry.h"
#include "tune/bench.h"

namespace tessera::tuning {

// What a bench is at, as the patience with it differs. Prepare: whatever else, such as asking
// plug-ins, packing, converting.
enum class BenchStage : uint8_t { Prepare, Build, Run };

// Told of each stage when it begins; for Build with the seconds that the backend announced, else 0.
using StageWatcher = std::function<void(BenchStage stage, double announced_seconds)>;

// Owns a pool of all threads and one of one, and the buffers of what it measures.
class GroupBench final : public Bench {
 public:
  // `threads` of the larger pool. `registry` must outlive it.
  GroupBench(std::vector<std::shared_ptr<const Plugin>> plugins, const ops::Registry& registry,
             int threads);
  ~GroupBench() override;

  // For a process that exists to measure: tells what it is at, and checks in memory between pages
  // that nobody may touch (Guard::Pages), where a kernel that does ends the process. The tensors of
  // all groups lie so already, as unpack_case() gives them.
  void guard(StageWatcher watcher);

  void load(const GroupCase& group) override;
  // Gives it a candidate of the graph that the group was cut from, so that build() need not ask the
  // plug-in again, which may offer less for the group alone. After load(). `whole` is that graph.
  void offer(const Candidate& candidate, const Graph& whole);

  Outcome build(const CandidateKey& key) override;
  Checked check(const CandidateKey& key) override;
  Outcome run_once(const CandidateKey& key, Weights weights) override;
  void drop(const CandidateKey& key) override;
  Outcome convert_once(const ConversionKey& key) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How `candidate`, offered for `graph` when asked for `threads`, is found again.
CandidateKey key_of(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts,
                    int threads);

}  // namespace tessera::tuning
