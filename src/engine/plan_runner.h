// Runs an execution plan.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/run_context.h"
#include "base/parallel.h"
#include "engine/built_plan.h"
#include "tessera/tensor.h"

namespace tessera {

// One step of one run, told to whoever watches. What a watcher writes into outputs, later steps
// see: tests inject faults this way.
struct PlanEvent {
  size_t step = 0;
  std::span<const tessera_buffer> inputs;
  std::span<const tessera_buffer> outputs;
  std::chrono::steady_clock::time_point start;
  std::chrono::nanoseconds duration;
};
using PlanWatcher = std::function<void(const PlanEvent& event)>;

// Owns the arena. For one thread at a time; several runners of one model share kernels' packs.
class PlanRunner {
 public:
  // Throws OutOfMemory where the arena needs more than the machine has, before it is allocated.
  PlanRunner(BuiltPlan plan, int threads);
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;
  ~PlanRunner();

  // `inputs` in the order of the graph's inputs; an empty tensor where nothing reads the input.
  // Gives the plan's results, in memory that the next run leaves alone. Throws what a kernel fails
  // with, at its node.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const PlanWatcher& watcher = {});

  const BuiltPlan& built() const { return built_; }
  int threads() const { return pool_.threads(); }

 private:
  // A place in a step's buffers whose pointer differs from run to run.
  struct Patch {
    size_t step = 0;
    bool is_output = false;
    size_t position = 0;
    int buffer = 0;
  };
  struct StepBuffers {
    std::vector<tessera_buffer> inputs;
    std::vector<tessera_buffer> outputs;
    std::vector<Patch> patches;
    std::string place;
    bool has_dynamic_output = false;
  };

  tessera_buffer face_of(int buffer, int32_t request) const;
  void prepare_step(size_t index);
  void bind_inputs(std::span<const Tensor> inputs);
  void patch(StepBuffers& buffers);
  void run_step(size_t index, RunContext& context);
  bool runs_alone(size_t step) const;
  void run_range(size_t begin, size_t end, RunContext& context, const PlanWatcher& watcher);
  void run_steps(const PlanWatcher& watcher);
  void* allocate_dynamic(size_t step, int32_t output, std::span<const int64_t> dims);

  BuiltPlan built_;
  ThreadPool pool_;
  std::unique_ptr<ThreadPool> one_;  // for steps on one thread, where pool_ has several
  void* arena_ = nullptr;
  std::vector<StepBuffers> steps_;
  std::vector<Tensor> tensors_;  // by buffer: inputs, outputs and dynamic ones of this run
  uint64_t runs_ = 0;
};

}  // namespace tessera
