// A plan with everything that it needs to run: kernels, packed constants, and their owners.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "plan/execution_plan.h"
#include "tessera/descriptions.h"

namespace tessera {

class CacheRecord;
class ExecutionContext;
class PlanRunner;
struct PlanEvent;
using PlanWatcher = std::function<void(const PlanEvent& event)>;

// The nested graphs of a node, planned. Not thread-safe.
class PlannedBodies {
 public:
  virtual ~PlannedBodies() = default;

  // The context of the enclosing plan, whose run the next runs are part of; null after that run.
  virtual void set_outer(ExecutionContext* context) = 0;
  // Runs the nested graph at index `body` of Node::bodies. `inputs` are those of close_body().
  // Returns its outputs, which may share the elements of inputs.
  virtual std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) = 0;
  // The runner of the plan that made the last run(), for further runs on the same sizes; null if it
  // takes no addresses (IoBinding::takes_addresses()).
  virtual PlanRunner* repeatable(size_t body) = 0;
  // What watches such further runs; empty unless the run of the enclosing plan is recorded.
  virtual const PlanWatcher& watcher(size_t body) = 0;
  // Appends the steps of recorded runs since the last call, one record for each step of the plans,
  // with the sums of its runs. The first one starts at `start`, relative to the outermost run.
  virtual void take_records(std::chrono::nanoseconds start, std::vector<StepRecord>& records) = 0;
  // Appends what the binds of these plans, and of the nested graphs in them, found out.
  virtual void add_records(std::vector<std::shared_ptr<const CacheRecord>>& records) const = 0;
  // Appends the steps of the plans that there are, and of the nested graphs in these.
  virtual void describe(std::vector<PlanStep>& steps) const = 0;
};

struct BuiltPlan {
  Graph graph;
  const ops::Registry* registry = nullptr;             // of the graph's ops; must outlive this
  std::vector<std::shared_ptr<const Plugin>> plugins;  // must outlive all members below
  std::shared_ptr<const LayoutTable> layouts;
  Offers offers;  // steps of the plan refer to its candidates
  ExecutionPlan plan;
  std::vector<std::shared_ptr<const Kernel>> kernels;  // by step; nullptr if the step has none
  // By step: the nested graphs of its node; null if it has none. May be shorter than the list of
  // steps. Plans of one build share them.
  std::vector<std::shared_ptr<PlannedBodies>> bodies;
  int64_t max_iterations = 0;                          // of loops; 0: no limit
  std::vector<std::shared_ptr<const void>> constants;  // by PlanConstant: its bytes
  std::vector<Tensor> constant_results;                // by result: the tensor, if it is a constant
};

// The name of a step in errors: that of its node, or of the last node of its group; for a
// conversion or a copy, the name of the value.
std::string step_location(const BuiltPlan& plan, const ExecutionStep& step);

}  // namespace tessera
