// Runs an execution plan: goes through the calls of its StepProgram.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/run_context.h"
#include "base/denormals.h"
#include "engine/built_plan.h"
#include "engine/execution_context.h"
#include "engine/io_binding.h"
#include "engine/step_program.h"
#include "tessera/tensor.h"

namespace tessera {

// One step of one run, told to whoever watches; views are no steps of a run. What a watcher writes
// into outputs, later steps see: tests inject faults this way.
struct PlanEvent {
  size_t step = 0;
  std::span<const tessera_buffer> inputs;
  std::span<const tessera_buffer> outputs;
  std::chrono::steady_clock::time_point start;
  std::chrono::nanoseconds duration;
};
using PlanWatcher = std::function<void(const PlanEvent& event)>;

struct RunnerOptions {
  int threads = 0;  // 0: all cores that the process may use
  Denormals denormals = Denormals::Flush;
  std::vector<StatePorts> state_pairs = {};
};

// For one thread at a time; several runners of one model share kernels' packs, and those that take
// turns a workplace.
class PlanRunner {
 public:
  // Runs at `place`, which must outlive it. Throws OutOfMemory where the arena needs more than the
  // machine has, before it is allocated.
  PlanRunner(BuiltPlan plan, ExecutionContext& place, std::vector<StatePorts> state_pairs = {});
  // Has a workplace of its own.
  PlanRunner(BuiltPlan plan, RunnerOptions options);
  PlanRunner(BuiltPlan plan, int threads)
      : PlanRunner(std::move(plan), RunnerOptions{.threads = threads}) {}
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  // `inputs` in the order of the graph's inputs; an empty tensor where nothing reads the input or
  // it is bound. Sparse inputs and results are the bytes of their storage, as
  // SparseTensor::storage(). Gives the plan's results; those that are not bound in memory that the
  // next run leaves alone. Throws what a kernel fails with, at its node, and Cancelled.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const PlanWatcher& watcher = {});

  // The same where all that is read and all results are bound (io_binding()): allocates nothing but
  // what the first run after binding needs, and what kernels do.
  void run_bound(const PlanWatcher& watcher = {});

  // Where inputs and results lie in memory of the caller's.
  IoBinding& io_binding() { return io_binding_; }
  const IoBinding& io_binding() const { return io_binding_; }

  // Ends the run that is going on, if one is, before its next step; run() throws Cancelled. From
  // any thread, also in a signal's handler.
  void cancel() { place_.cancel(); }
  // The same for every run that takes longer; 0: none. Costs a look at the clock for each step.
  void set_time_limit(std::chrono::nanoseconds limit) { place_.set_time_limit(limit); }

  // What a step takes beside its kernel: the median time of running all calls with an empty
  // function for each, over their number; 0 without any.
  double measure_dispatch_ns();

  const BuiltPlan& built() const { return built_; }
  int threads() const { return place_.pool().threads(); }

 private:
  // The call that was not made or failed, or one past the last.
  struct Stop {
    size_t call = 0;
    int32_t status = TESSERA_OK;
  };

  PlanRunner(BuiltPlan plan, std::unique_ptr<ExecutionContext> own, ExecutionContext* place,
             std::vector<StatePorts> state_pairs);

  void run_steps(const PlanWatcher& watcher);
  void run_regions(const PlanWatcher& watcher);
  void run_region(const StaticSegment& region, RunContext& context, const PlanWatcher& watcher);
  Stop call_all(std::span<const StepCall> calls, RunContext& context);
  void run_calls(size_t begin, size_t end, RunContext& context);
  void run_watched(size_t begin, size_t end, RunContext& context, const PlanWatcher& watcher);
  [[noreturn]] void stop_at(size_t call) const;
  void prepare_dynamic(const StaticSegment& region);
  void* allocate_dynamic(int32_t output, std::span<const int64_t> dims);

  BuiltPlan built_;
  std::unique_ptr<ExecutionContext> own_;  // null where `place_` is somebody else's
  ExecutionContext& place_;
  ThreadPool* one_;  // for steps on one thread, where the pool has several and some step wants it
  StepProgram program_;
  IoBinding io_binding_;
  RunContext context_;
  std::optional<RunContext> alone_context_;
  std::vector<Tensor> dynamic_;  // by buffer: values whose size this run has shown
  size_t dynamic_step_ = 0;      // that is running
  tessera_error error_ = {};
};

}  // namespace tessera
