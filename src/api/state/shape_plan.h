// The plan of an executor for one set of input shapes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compile/build_plan.h"
#include "compile/open_graph.h"
#include "engine/execution_context.h"
#include "engine/plan_runner.h"
#include "graph/sparse_form.h"
#include "ops/registry.h"
#include "plan/plan_family.h"
#include "tessera/tessera.h"

namespace tessera {

using Dims = std::vector<int64_t>;

// Describes a plan. Moves the descriptions that `result` has out of it.
PlanDescription describe(PlanResult& result, int threads, const ops::Registry& registry);

// The base-2 logarithm of the elements of all inputs, by which sizes are compared: kernels that are
// fast for some sizes are so for sizes near them.
double log2_elements(const std::vector<Dims>& inputs);

// Throws InvalidArgument, because an input that was bound with fixed_shapes as `bound` has the
// dimensions `dims`.
[[noreturn]] void refuse_shape(const ValueDescription& bound, const Dims& dims);

// What a plan needs to change its sizes.
struct ShapeFamily {
  ValueSizes sizes;
  PlanFamily plan;
  // The smallest and the largest log2_elements() for which its kernels are known to be those that
  // would be chosen.
  double chosen_from = 0;
  double chosen_to = 0;

  // How many doublings a size is away from these; 0 between them.
  double distance(double log2_elements) const {
    return std::max({0.0, chosen_from - log2_elements, log2_elements - chosen_to});
  }
};

struct ShapePlan {
  // Runs in the execution context `context`, which must outlive it. Throws as PlanRunner's
  // constructor and state_ports() do.
  ShapePlan(PlanResult result, const BindOptions& options, ExecutionContext& context,
            const ops::Registry& registry);

  // The plan of a family, by the sizes that belong to `built`. Check explain_fixed() before
  // resize().
  ShapePlan(PlanResult built, ValueSizes sizes, const BindOptions& options,
            ExecutionContext& context, const ops::Registry& registry);

  // "", or why the plan cannot have other sizes.
  std::string explain_fixed() const;
  // Gives the plan of a family the sizes that follow from these dimensions of the model's inputs.
  // False if they do not belong to the family, OutOfMemory as PlanRunner::resize(); then the plan
  // keeps its sizes. Nothing may be bound.
  bool resize(const std::vector<Dims>& wanted);
  // Whether the same kernels compute the same nodes as in `other`.
  bool has_choice_of(const ShapePlan& other) const;
  // Updates `description` after resize().
  void update_description(int threads, const ops::Registry& registry);

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
  std::unique_ptr<ShapeFamily> family;  // null: the plan is for one set of shapes
  bool is_described = true;
  bool is_named = false;  // bind() was asked for several shapes, and for these, too
  // Of a family: whether plans for exact shapes compute some nodes much faster, and how often it
  // ran with its present sizes.
  bool is_slow = false;
  int runs_of_sizes = 0;

 private:
  bool set_sizes(const std::vector<Dims>& wanted);
};

}  // namespace tessera
