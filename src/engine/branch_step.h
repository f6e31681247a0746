// A step that runs one of several plans of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/built_plan.h"
#include "engine/step_program.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The branches of one step, resolved: arguments that lie in a branch's arena
// point into the step's workspace, its inputs and results to the step's own.
// For one thread at a time. A run is ended between the steps of the plan
// around, not within.
class BranchStep {
 public:
  // Both must outlive this: the plan with the step, and the plans of its
  // branches.
  BranchStep(const ExecutionStep& step, const std::vector<BuiltPlan>& branches);
  ~BranchStep();
  BranchStep(const BranchStep&) = delete;
  BranchStep& operator=(const BranchStep&) = delete;

  // A StepCall::run; `self` is the BranchStep. The first input is a bool: where
  // it is true the first branch runs, else the last.
  static int32_t run(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                     const tessera_buffer* outputs, tessera_error* error);

 private:
  struct Branch;

  std::vector<std::unique_ptr<Branch>> branches_;
};

}  // namespace tessera
