// Executor: checks the arguments of the caller, and runs plans with the PlanRunner of src/engine.
#include <algorithm>
#include <utility>

#include "api/bind/planner.h"
#include "api/executor/dump_kernels.h"
#include "api/options/io_layouts.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "base/errors/likely_name.h"
#include "base/threads/stopwatch.h"
#include "tessera/backend_abi.h"

namespace tessera {
namespace {

// In nanoseconds, this fits 64 bits.
constexpr double kMaxSeconds = 1e9;

std::string quoted_names(const std::vector<ValueDescription>& values) {
  std::string names;
  for (const ValueDescription& value : values) {
    names += (names.empty() ? "'" : ", '") + value.name + "'";
  }
  return names.empty() ? "none" : names;
}

// Returns the index of the value with this name. Throws InvalidArgument if there is none.
size_t find_named(const std::vector<ValueDescription>& values, const std::string& name,
                  const std::string& what) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.name == name; });
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  std::vector<std::string> names;
  for (const ValueDescription& value : values) names.push_back(value.name);
  throw Error(ErrorKind::InvalidArgument, what + " '" + name + "'",
              "the model has no such " + what + "; it has " + quoted_names(values) +
                  did_you_mean(name, names));
}

}  // namespace

Executor::State::State(std::shared_ptr<Model::State> bound_model, const BindOptions& bound,
                       PlanResult first)
    : registry(bound_model->loaded.registry()),
      model(std::move(bound_model)),
      options(bound),
      reused(std::move(first.reused)),
      declared(model->loaded.declared_shapes()),
      context(bound.threads, bound.run.keeps_denormals ? Denormals::Keep : Denormals::Flush),
      memory(declared, bound.run.fixed_shapes) {
  // The callback may no longer exist when a run has to plan again.
  options.on_progress = {};
  plans.push_back(std::make_unique<ShapePlan>(std::move(first), options, context, *registry));
  dump(plan().runner->built());
}

void Executor::State::dump(const BuiltPlan& built) const {
  dump_kernels(built, dump_folder(), model->log, model->information_log);
}

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::inputs_in_order(
    const std::map<std::string, AnyOrTensor>& given) const {
  std::vector<Tensor> ordered;
  size_t known = 0;
  for (size_t index = 0; index < plan().inputs.size(); ++index) {
    const ValueDescription& input = plan().inputs[index];
    const auto found = given.find(input.name);
    if (found == given.end()) {
      if (input.is_read && !plan().runner->io_binding().is_input_bound(index)) {
        // An unknown name is likely to be a mistyped one of the missing input.
        for (const auto& [input_name, tensor] : given) input_named(input_name);
        throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                    "expected a tensor (" + input.text + "), found none given");
      }
      ordered.emplace_back();
      continue;
    }
    ++known;
    if (!input.is_read) {
      check_kind({input, plan().input_forms[index]}, found->second);
      declared.check(input, dims_of(found->second));
    }
    ordered.push_back(input.is_read ? feed({input, plan().input_forms[index]}, found->second)
                                    : Tensor());
  }
  if (known == given.size()) return ordered;
  for (const auto& [input_name, tensor] : given) input_named(input_name);
  return ordered;
}

size_t Executor::State::input_named(const std::string& name) const {
  return find_named(plan().inputs, name, "input");
}

size_t Executor::State::output_named(const std::string& name) const {
  return find_named(plan().outputs, name, "output");
}

void Executor::State::record(const PlanEvent& event,
                             std::chrono::steady_clock::time_point run_start) {
  const PlanStep& step = plan().description.steps[event.step];
  steps.push_back({.node = step.name,
                   .op = step.op,
                   .backend = step.backend,
                   .algorithm = step.algorithm,
                   .start = event.start - run_start,
                   .duration = event.duration,
                   .enqueue = event.enqueue,
                   .device = plan().runner->device_of(event.step),
                   .flops = step.flops,
                   .bytes = step.bytes});
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

template <class AnyOrTensor>
void Executor::State::select_plan(const std::map<std::string, AnyOrTensor>& given) {
  select_plan([&](size_t index) -> const Dims* {
    const ValueDescription& input = plan().inputs[index];
    const auto found = given.find(input.name);
    if (found != given.end()) {
      check_kind({input, plan().input_forms[index]}, found->second);
      return &dims_of(found->second);
    }
    return memory.input_dims(index);
  });
}

void Executor::State::select_plan(const std::function<const Dims*(size_t input)>& dims_of) {
  bool is_other = false;
  for (size_t index = 0; index < declared.input_count(); ++index) {
    if (!declared.is_read(index)) continue;
    const Dims* const dims = dims_of(index);
    if (dims == nullptr || *dims == plan().dims[index]) continue;
    if (options.run.fixed_shapes) refuse_shape(plan().inputs[index], *dims);
    is_other = true;
  }
  if (is_other && !declared.are_fixed()) {
    std::vector<Dims> wanted = plan().dims;
    for (size_t index = 0; index < wanted.size(); ++index) {
      const Dims* const dims = declared.is_read(index) ? dims_of(index) : nullptr;
      if (dims != nullptr) wanted[index] = *dims;
    }
    switch_to(wanted);
  }
  memory.attach(plan());
}

void Executor::State::switch_to(const std::vector<Dims>& dims) {
  const auto is_wanted = [&](const std::unique_ptr<ShapePlan>& known) {
    for (size_t index = 0; index < dims.size(); ++index) {
      if (declared.is_read(index) && known->dims[index] != dims[index]) return false;
    }
    return true;
  };
  const auto found = std::find_if(plans.begin(), plans.end(), is_wanted);
  std::unique_ptr<ShapePlan> made;
  if (found == plans.end()) made = make_plan(dims);
  memory.detach(plan());
  if (made) {
    if (plans.size() >= static_cast<size_t>(options.limits.most_shapes)) {
      if (plans.back().get() == swapped) swapped = nullptr;
      plans.pop_back();
      model->stored.drop_packs_of_shapes();
    }
    plans.insert(plans.begin(), std::move(made));
  } else {
    std::rotate(plans.begin(), found, found + 1);
  }
}

std::unique_ptr<ShapePlan> Executor::State::make_plan(const std::vector<Dims>& dims) {
  const Stopwatch stopwatch;
  BindOptions wanted = options;
  wanted.tune.tuning_inputs.clear();  // they have the shapes of bind()
  for (size_t index = 0; index < dims.size(); ++index) {
    if (declared.is_read(index)) wanted.shapes[plan().inputs[index].name] = dims[index];
  }
  std::vector<const BuiltPlan*> siblings;
  for (const std::unique_ptr<ShapePlan>& other : plans) {
    siblings.push_back(&other->runner->built());
  }
  Model::State::Planner planner(*model, wanted, BuildPurpose::OtherShapes);
  planner.reuse(has_prices ? &reused : nullptr, std::move(siblings));
  PlanResult result = planner.build();
  model->loaded.release_packed(result.built);
  auto made = std::make_unique<ShapePlan>(std::move(result), wanted, context, *registry);
  made->seconds = stopwatch.read().seconds;
  dump(made->runner->built());
  return made;
}

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::run(const std::map<std::string, AnyOrTensor>& given) {
  // Begins before planning, so that cancel() and the time limit also apply to it.
  const ExecutionContext::ActiveRun turn(context);
  if (swap) swap_before_run();
  select_plan(given);
  const std::vector<Tensor> ordered = inputs_in_order(given);
  if (!is_recording) return plan().runner->run(ordered);
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  return plan().runner->run(ordered, [&](const PlanEvent& event) { record(event, start); });
}

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  const ShapePlan& plan = state_->plan();
  for (size_t index = 0; index < plan.output_forms.size(); ++index) {
    if (!plan.output_forms[index]) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + plan.outputs[index].name + "'",
                "run() gives dense outputs, but this one was bound in " +
                    text(*plan.output_forms[index]) + ": call run_any()");
  }
  return state_->run(inputs);
}

std::vector<AnyTensor> Executor::run_any(const std::map<std::string, AnyTensor>& inputs) {
  std::vector<Tensor> results = state_->run(inputs);
  const ShapePlan& plan = state_->plan();
  std::vector<AnyTensor> given;
  for (size_t index = 0; index < results.size(); ++index) {
    const std::optional<SparseForm> form =
        index < plan.output_forms.size() ? plan.output_forms[index] : std::nullopt;
    given.push_back(give({plan.outputs[index], form}, std::move(results[index])));
  }
  return given;
}

void Executor::bind_input(const std::string& name, const AnyTensor& memory) {
  state_->memory.bind_input(state_->plan(), state_->input_named(name), memory);
}

void Executor::bind_output(const std::string& name, Tensor memory) {
  state_->memory.bind_output(state_->plan(), state_->output_named(name), std::move(memory));
}

void Executor::clear_bindings() { state_->memory.clear(state_->plan()); }

void Executor::State::run_bound() {
  const ExecutionContext::ActiveRun turn(context);
  if (swap) swap_before_run();
  if (!memory.is_complete()) {
    select_plan(std::map<std::string, Tensor>());
    memory.check_complete(plan());
  }
  if (!is_recording) return plan().runner->run_bound();
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  plan().runner->run_bound([&](const PlanEvent& event) { record(event, start); });
}

void Executor::run_bound() { state_->run_bound(); }
void Executor::cancel() { state_->context.cancel(); }

std::string Executor::explain_unusable() const { return state_->plan().runner->explain_unusable(); }

void Executor::set_time_limit(double seconds) {
  if (!(seconds >= 0)) {
    throw Error(ErrorKind::InvalidArgument, "time limit",
                "expected 0 (none) or more seconds, found " + std::to_string(seconds));
  }
  const std::chrono::duration<double> limit(std::min(seconds, kMaxSeconds));
  state_->context.set_time_limit(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
}

void Executor::State::swap_to(PlanSwap::Build build, int64_t runs) {
  swapped = &plan();
  swap = std::make_unique<PlanSwap>(std::move(build), runs);
}

void Executor::wait_for_swap() {
  if (!state_->swap) return;
  state_->swap->wait();
  state_->take_swap();
}

void Executor::State::swap_before_run() {
  if (swap->is_ready_before_run()) take_swap();
}

void Executor::State::take_swap() {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  PlanSwap::Built built = swap->take();
  swap.reset();
  std::string failure = std::move(built.failure);
  // The plan to replace may have been evicted for plans of other shapes.
  if (built.next && swapped != nullptr) {
    try {
      replace_swapped(std::move(built.next->plan));
      if (built.next->record) cache = std::move(built.next->record);
      stages.push_back({.name = "swap",
                        .start = start - bound_at,
                        .duration = std::chrono::steady_clock::now() - start});
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  swapped = nullptr;
  if (!failure.empty()) {
    model->log.warn("the faster plan cannot be used, so the first plan stays in use: " + failure);
  }
}

void Executor::State::replace_swapped(PlanResult result) {
  PlanDescription description = describe(result, context.pool().threads(), *registry);
  std::unique_ptr<PlanRunner> runner =
      swapped->runner_of(std::move(result.built), options, context);
  // The next run attaches the bound memory to the new plan.
  if (swapped == &plan()) memory.detach(plan());
  swapped->runner = std::move(runner);
  dump(swapped->runner->built());
  swapped->description = std::move(description);
  swapped->kernels = result.kernels;
  swapped->reused_kernels = result.reused_kernels;
  swapped->loaded_kernels = result.loaded_kernels;
}

double Executor::measure_dispatch_ns() { return state_->plan().runner->measure_dispatch_ns(); }

const std::vector<ValueDescription>& Executor::inputs() const { return state_->plan().inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->plan().outputs; }
int Executor::threads() const { return state_->context.pool().threads(); }
const PlanDescription& Executor::plan() const { return state_->plan().description; }

ShapesDescription Executor::shapes() const {
  ShapesDescription shapes{.arena_bytes = state_->context.arena_bytes()};
  for (const std::unique_ptr<ShapePlan>& plan : state_->plans) {
    ShapePlanDescription& described = shapes.plans.emplace_back();
    for (size_t index = 0; index < plan->inputs.size(); ++index) {
      if (!state_->declared.is_read(index)) continue;
      described.shapes.emplace(plan->inputs[index].name, plan->dims[index]);
    }
    described.arena_bytes = plan->description.arena_bytes;
    described.pack_bytes = plan->description.pack_bytes;
    described.kernels = plan->kernels;
    described.reused_kernels = plan->reused_kernels;
    described.loaded_kernels = plan->loaded_kernels;
    described.seconds = plan->seconds;
  }
  return shapes;
}

std::vector<CompileDescription> Executor::compiled() const {
  std::vector<CompileDescription> all;
  for (const std::shared_ptr<const Plugin>& plugin : state_->plan().runner->built().plugins) {
    const std::optional<tessera_compile_counts> counts = plugin->compile_counts();
    if (!counts) continue;
    all.push_back({.backend = plugin->name(),
                   .kernels = counts->kernels,
                   .unique = counts->unique,
                   .compiled = counts->compiled,
                   .loaded_from_store = counts->loaded,
                   .compile_seconds = counts->compile_seconds});
  }
  return all;
}

std::optional<KernelForm> kernel_form(std::string_view name) {
  if (name == "expression") return KernelForm::Expression;
  if (name == "source") return KernelForm::Source;
  if (name == "assembly") return KernelForm::Assembly;
  return std::nullopt;
}

std::optional<std::string> Executor::kernel_text(size_t step, KernelForm form) const {
  const std::vector<std::shared_ptr<const Kernel>>& kernels =
      state_->plan().runner->built().kernels;
  if (step >= kernels.size()) {
    throw Error(ErrorKind::InvalidArgument, "argument 'step'",
                "expected the number of a step below " + std::to_string(kernels.size()) +
                    ", found " + std::to_string(step));
  }
  if (kernels[step] == nullptr) return std::nullopt;
  switch (form) {
    case KernelForm::Expression:
      return kernels[step]->describe(TESSERA_KERNEL_EXPRESSION);
    case KernelForm::Source:
      return kernels[step]->describe(TESSERA_KERNEL_SOURCE);
    default:
      return kernels[step]->describe(TESSERA_KERNEL_ASSEMBLY);
  }
}

const std::string& Executor::costs() const {
  std::call_once(state_->are_costs_written, [&] {
    // If the plan came from a cache, the prices are in the cache record: bind() did not collect
    // them.
    const tuning::CostTable& costs =
        state_->is_plan_cached ? state_->cache->contents().found.costs : state_->costs;
    if (state_->has_prices) state_->costs_text = tuning::write_cost_table(costs);
  });
  return state_->costs_text;
}
const std::vector<StageRecord>& Executor::stages() const { return state_->stages; }
void Executor::record_steps(bool is_on) { state_->is_recording = is_on; }
const std::vector<StepRecord>& Executor::steps() const { return state_->steps; }

}  // namespace tessera
