#include "api/state/shape_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
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

double log2_elements(const std::vector<Dims>& inputs) {
  double sum = 0;
  for (const Dims& dims : inputs) {
    double elements = 1;
    for (const int64_t size : dims) elements *= static_cast<double>(std::max<int64_t>(1, size));
    sum += elements;
  }
  return std::log2(std::max(1.0, sum));
}

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

ShapePlan::ShapePlan(PlanResult built, ValueSizes sizes, const BindOptions& options,
                     ExecutionContext& context, const ops::Registry& registry)
    : ShapePlan(std::move(built), options, context, registry) {
  const BuiltPlan& plan = runner->built();
  family = std::make_unique<ShapeFamily>(
      ShapeFamily{std::move(sizes), PlanFamily(plan.graph, plan.offers, *plan.layouts, plan.plan)});
  // The others are not the caller's.
  const size_t count = inputs.size() - family->sizes.inputs().size();
  inputs.resize(count);
  input_forms.resize(count);
  dims.resize(count);
}

std::string ShapePlan::explain_fixed() const { return family->plan.explain_fixed(); }

bool ShapePlan::resize(const std::vector<Dims>& wanted) {
  bool is_resized = false;
  try {
    is_resized = set_sizes(wanted);
  } catch (const Error&) {
    set_sizes(dims);
    throw;
  }
  if (!is_resized) {
    set_sizes(dims);
    return false;
  }
  const Graph& graph = runner->built().graph;
  const auto note = [&](ValueDescription& value, ValueId id) {
    const Dims& now = family->sizes.dims()[static_cast<size_t>(id.index)];
    // The size of an input that nothing reads may be unknown.
    if (!value.shape || value.shape->size() != now.size()) return;
    if (std::ranges::any_of(now, [](int64_t size) { return size < 0; })) return;
    for (size_t axis = 0; axis < now.size(); ++axis) (*value.shape)[axis].value = now[axis];
    value.text = std::string(name(value.type)) + " " + dims_text(now);
  };
  for (size_t index = 0; index < inputs.size(); ++index) note(inputs[index], graph.inputs[index]);
  for (size_t index = 0; index < outputs.size(); ++index) {
    note(outputs[index], graph.outputs[index]);
  }
  // The type rules that check arguments in the run compare with the types of the plan.
  if (runner->checks_arguments()) runner->note_types(family->sizes.dims());
  dims = wanted;
  runs_of_sizes = 0;
  is_described = false;
  return true;
}

bool ShapePlan::has_choice_of(const ShapePlan& other) const {
  const auto choice = [](const PlanStep& step) {
    return std::tie(step.nodes, step.backend, step.algorithm, step.threads);
  };
  return std::ranges::equal(description.steps, other.description.steps, {}, choice, choice);
}

bool ShapePlan::set_sizes(const std::vector<Dims>& wanted) {
  ValueSizes& sizes = family->sizes;
  if (!sizes.set(wanted) || !runner->resize(family->plan, sizes.dims())) return false;
  const Graph& graph = runner->built().graph;
  for (size_t index = 0; index < sizes.inputs().size(); ++index) {
    const size_t input = inputs.size() + index;
    Tensor passed = sizes.inputs()[index];
    // The caller keeps a result, which must not change with the next sizes.
    if (std::ranges::count(graph.outputs, graph.inputs[input]) != 0) {
      passed = Tensor::copy_of(passed.type(), passed.dims(), passed.data(),
                               static_cast<size_t>(passed.bytes()));
    }
    runner->io_binding().bind_input(input, std::move(passed));
  }
  return true;
}

void ShapePlan::update_description(int threads, const ops::Registry& registry) {
  if (is_described) return;
  runner->note_types(family->sizes.dims());
  PlanDescription now = describe_plan(runner->built(), description.pack_bytes, threads, registry);
  now.candidates = std::move(description.candidates);
  now.conversions = std::move(description.conversions);
  now.placement = std::move(description.placement);
  now.tuning = std::move(description.tuning);
  description = std::move(now);
  is_described = true;
}

std::unique_ptr<PlanRunner> ShapePlan::runner_of(BuiltPlan built, const BindOptions& options,
                                                 ExecutionContext& context) const {
  auto made = std::make_unique<PlanRunner>(std::move(built), context,
                                           state_ports(options.run.state_pairs, inputs, outputs));
  made->set_max_bulk_steps(options.run.max_bulk_steps);
  return made;
}

}  // namespace tessera
