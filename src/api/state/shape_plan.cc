#include "api/state/shape_plan.h"

#include <utility>

#include "api/describe/describe.h"
#include "api/describe/describe_plan.h"
#include "api/options/bind_options.h"
#include "api/options/io_layouts.h"

namespace tessera {
namespace {

std::vector<ValueDescription> describe_results(const PlanResult& result) {
  const Graph& graph = result.built.graph;
  std::vector<ValueDescription> outputs = describe_values(graph, graph.outputs);
  for (const std::vector<ValueId>* ids : {&graph.kept, &result.step_outputs}) {
    for (ValueDescription& value : describe_values(graph, *ids)) {
      outputs.push_back(std::move(value));
    }
  }
  return outputs;
}

std::vector<Dims> dims_of(const std::vector<ValueDescription>& inputs) {
  std::vector<Dims> all;
  for (const ValueDescription& input : inputs) {
    Dims& dims = all.emplace_back();
    if (!input.shape) continue;
    for (const Dimension& dim : *input.shape) dims.push_back(dim.value.value_or(-1));
  }
  return all;
}

}  // namespace

PlanDescription describe(PlanResult& result, int threads, const ops::Registry& registry) {
  PlanDescription plan = describe_plan(result.built, result.pack_bytes, threads, registry);
  for (size_t index = 0; index < result.step_seconds.size(); ++index) {
    plan.steps[index].predicted_seconds = result.step_seconds[index];
  }
  for (size_t index = 0; index < result.step_unfused_seconds.size(); ++index) {
    PlanStep& step = plan.steps[index];
    if (step.unfused_bytes) step.unfused_seconds = result.step_unfused_seconds[index];
  }
  plan.candidates = std::move(result.candidates);
  plan.conversions = std::move(result.conversions);
  plan.placement = std::move(result.placement);
  plan.tuning = std::move(result.tuning);
  return plan;
}

void refuse_shape(const ValueDescription& bound, const Dims& dims) {
  throw Error(ErrorKind::InvalidArgument, "input '" + bound.name + "'",
              "expected " + bound.text + ", as it was bound with fixed_shapes, found " +
                  std::string(name(bound.type)) + " " + dims_text(dims));
}

ShapePlan::ShapePlan(PlanResult result, const BindOptions& options, ExecutionContext& context,
                     const ops::Registry& registry)
    : inputs(describe_inputs(result.built.graph)),
      outputs(describe_results(result)),
      input_forms(io_forms(result.built.graph, result.built.graph.inputs)),
      output_forms(io_forms(result.built.graph, result.built.graph.outputs)),
      dims(dims_of(inputs)),
      description(describe(result, context.pool().threads(), registry)),
      kernels(result.kernels),
      reused_kernels(result.reused_kernels),
      loaded_kernels(result.loaded_kernels),
      runner(runner_of(std::move(result.built), options, context)) {}

std::unique_ptr<PlanRunner> ShapePlan::runner_of(BuiltPlan built, const BindOptions& options,
                                                 ExecutionContext& context) const {
  auto made = std::make_unique<PlanRunner>(std::move(built), context,
                                           state_ports(options.run.state_pairs, inputs, outputs));
  made->set_max_bulk_steps(options.run.max_bulk_steps);
  return made;
}

}  // namespace tessera
