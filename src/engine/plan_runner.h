// Runs an execution plan: goes through the calls of its StepProgram.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/contract/run_context.h"
#include "base/threads/denormals.h"
#include "engine/built_plan.h"
#include "engine/execution_context.h"
#include "engine/io_binding.h"
#include "engine/step_program.h"
#include "engine/value_step.h"
#include "plan/plan_family.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {

// One step of a run, as reported to a watcher; views are not reported. Later steps see what a
// watcher writes into outputs: tests inject faults this way.
struct PlanEvent {
  size_t step = 0;
  std::span<const tessera_buffer> inputs;
  std::span<const tessera_buffer> outputs;
  std::chrono::steady_clock::time_point start;
  std::chrono::nanoseconds duration;
  // The part of `duration` in which the host enqueued a step of a device; after it, the host
  // waited.
  std::chrono::nanoseconds enqueue{};
};

struct RunnerOptions {
  int threads = 0;  // 0: all cores that the process may use
  // The number of steps of a device that are enqueued before the host waits for them; 0: as many as
  // the plan allows.
  int max_bulk_steps = 0;
  Denormals denormals = Denormals::Flush;
  std::vector<StatePorts> state_pairs = {};
};

// Not thread-safe. Runners of one model share the packs of kernels; runners that run in turns share
// an execution context.
class PlanRunner {
 public:
  // Runs on `context`, which must outlive this object. Throws OutOfMemory, before allocating, if
  // the arena needs more than the available memory.
  PlanRunner(BuiltPlan plan, ExecutionContext& context, std::vector<StatePorts> state_pairs = {});
  ~PlanRunner();
  // Makes an execution context of its own.
  PlanRunner(BuiltPlan plan, RunnerOptions options);
  PlanRunner(BuiltPlan plan, int threads)
      : PlanRunner(std::move(plan), RunnerOptions{.threads = threads}) {}
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  // `inputs` are in the order of the graph's inputs; a tensor may be empty if nothing reads the
  // input or it is bound. Sparse inputs and results are the bytes of their storage, as in
  // SparseTensor::storage(). Returns the plan's results; the next run does not change those that
  // are not bound. Throws the error of a kernel, at its node, and Cancelled.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const PlanWatcher& watcher = {});

  // Like run(), if all inputs that are read and all results are bound (io_binding()). Allocates
  // nothing, except in the first run after binding and in kernels.
  void run_bound(const PlanWatcher& watcher = {});

  // Like run(), with inputs and results at these addresses; see IoBinding::begin_at().
  void run_at(std::span<const void* const> inputs, std::span<void* const> results,
              const PlanWatcher& watcher = {});

  // Binds inputs and results to memory of the caller.
  IoBinding& io_binding() { return io_binding_; }
  const IoBinding& io_binding() const { return io_binding_; }

  // Whether the arguments of some steps are checked in each run, against the types of the graph.
  bool checks_arguments() const;
  // Gives the plan other sizes, if they belong to `family`, which must have been made for it; else
  // returns false and changes nothing. Results must not be bound, nor inputs whose sizes change.
  // Throws OutOfMemory if the arena would need more memory than there is; then the plan cannot run
  // before it got other sizes.
  bool resize(PlanFamily& family, PlanFamily::ValueDims dims);
  // Sets the types of built().graph to these sizes, which resize() has set, for descriptions.
  void note_types(PlanFamily::ValueDims dims);

  // Stops the active run, if there is one, before its next step; run() throws Cancelled. May be
  // called from any thread and from signal handlers.
  void cancel() { execution_context_.cancel(); }
  // Stops every run that takes longer in the same way; 0: no limit. Costs a clock read for each
  // step.
  void set_time_limit(std::chrono::nanoseconds limit) { execution_context_.set_time_limit(limit); }

  // "", or why no run is possible any more: a device that the plan uses was lost, or was opened
  // before this process was forked.
  std::string explain_unusable() const;

  // The name of the device that does a step: "cpu" for the host's processor.
  std::string device_of(size_t step) const;

  // See RunnerOptions::max_bulk_steps.
  void set_max_bulk_steps(int steps) { max_bulk_steps_ = steps; }

  // The overhead of a step: the median time of running all calls, with an empty function in place
  // of each, divided by their number; 0 if there are none.
  double measure_dispatch_ns();

  const BuiltPlan& built() const { return built_; }
  int threads() const { return execution_context_.pool().threads(); }

 private:
  // The call that was not made or that failed; one past the last if all succeeded.
  struct Stop {
    size_t call = 0;
    int32_t status = TESSERA_OK;
  };

  // A device that the plan uses. Calls [first_pending, end_pending) were enqueued since the host
  // last waited for all of the device's work; `pending` is their number.
  struct DeviceRun {
    DeviceRun(DeviceId device_id, DeviceContext& device_context, ThreadPool& pool);

    DeviceId id;
    DeviceContext& device;
    RunContext context;
    size_t first_pending = 0;
    size_t end_pending = 0;
    int pending = 0;
  };

  PlanRunner(BuiltPlan plan, std::unique_ptr<ExecutionContext> own, ExecutionContext* context,
             std::vector<StatePorts> state_pairs);

  void run_steps(const PlanWatcher& watcher);
  void add_devices();
  void prepare_devices();
  DeviceRun& run_of(DeviceId device);
  void wait_for(std::span<const StaticSegment::Wait> waits, DeviceId waiting);
  void wait_on_host(DeviceRun& run, void* event);
  void run_bulk(const StaticSegment& segment, const PlanWatcher& watcher);
  [[noreturn]] void fail_device(const DeviceRun& run, const Error& error) const;
  void run_segments(const PlanWatcher& watcher);
  void run_segment(const StaticSegment& segment, RunContext& context, const PlanWatcher& watcher);
  Stop call_all(std::span<const StepCall> calls, RunContext& context);
  void run_calls(size_t begin, size_t end, RunContext& context);
  void run_watched(size_t begin, size_t end, RunContext& context, const PlanWatcher& watcher);
  [[noreturn]] void stop_at(size_t call) const;
  void run_on_values(const StaticSegment& segment, const PlanWatcher& watcher);
  void prepare_dynamic(const StaticSegment& segment);
  void* allocate_dynamic(int32_t output, std::span<const int64_t> dims);

  BuiltPlan built_;
  std::unique_ptr<ExecutionContext> own_;  // nullptr if the context is not owned
  ExecutionContext& execution_context_;
  ThreadPool* one_;  // for steps on one thread; nullptr if there are none, or the pool has only one
  StepProgram program_;
  IoBinding io_binding_;
  RunContext context_;
  std::optional<RunContext> single_thread_context_;
  std::vector<std::unique_ptr<DeviceRun>> devices_;
  std::vector<DeviceEvent> events_;  // by event of the program
  int max_bulk_steps_ = 0;
  std::vector<Tensor> dynamic_;  // by buffer: values whose sizes became known in this run
  size_t dynamic_step_ = 0;      // the step that is running
  MemoryCheck memory_check_;     // of what it allocates
  std::vector<std::unique_ptr<ValueStep>> value_steps_;  // by step; null for others
  tessera_error error_ = {};
};

}  // namespace tessera
