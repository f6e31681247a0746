// The plan of an executor for one set of input shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compile/build_plan.h"
#include "engine/execution_context.h"
#include "engine/plan_runner.h"
#include "graph/sparse_form.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

using Dims = std::vector<int64_t>;

// Describes a plan. Moves the descriptions that `result` has out of it.
PlanDescription describe(PlanResult& result, int threads, const ops::Registry& registry);

// Throws InvalidArgument, because an input that was bound with fixed_shapes as `bound` has the
// dimensions `dims`.
[[noreturn]] void refuse_shape(const ValueDescription& bound, const Dims& dims);

struct ShapePlan {
  // Runs in the execution context `context`, which must outlive it. Throws as PlanRunner's
  // constructor and state_ports() do.
  ShapePlan(PlanResult result, const BindOptions& options, ExecutionContext& context,
            const ops::Registry& registry);

  // A runner for another plan of the same graph and shapes in `context`.
  std::unique_ptr<PlanRunner> runner_of(BuiltPlan built, const BindOptions& options,
                                        ExecutionContext& context) const;

  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  std::vector<std::optional<SparseForm>> input_forms;
  std::vector<std::optional<SparseForm>> output_forms;  // of the model's outputs
  std::vector<Dims> dims;                               // by input
  PlanDescription description;
  int kernels = 0;
  int reused_kernels = 0;
  int loaded_kernels = 0;
  double seconds = 0;  // planning time
  std::unique_ptr<PlanRunner> runner;
};

}  // namespace tessera
