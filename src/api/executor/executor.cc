// Executor: checks the arguments of the caller, and runs plans with the PlanRunner of src/engine.
// executor_plans.cc has the plans from which a run selects one.
#include <algorithm>
#include <utility>

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

Executor::Deferred::Deferred(std::shared_ptr<Model::State> bound_model, const BindOptions& bound)
    : model(std::move(bound_model)), options(bound), threads(ThreadPool(bound.threads).threads()) {
  // The callback of the caller may no longer exist at the first run.
  options.on_progress = [this](const TuneProgress&) { return !is_cancelled && !is_late(); };
  ModelDescription described = model->loaded.describe();
  inputs = std::move(described.inputs);
  outputs = std::move(described.outputs);
}

Executor::State::State(std::shared_ptr<Model::State> bound_model, const BindOptions& bound,
                       PlanResult first)
    : registry(bound_model->loaded.registry()),
      model(std::move(bound_model)),
      options(bound),
      declared(model->loaded.declared_shapes(bound)),
      context(bound.threads, bound.run.keeps_denormals ? Denormals::Keep : Denormals::Flush),
      memory(declared, bound.run.fixed_shapes) {
  // The callback may no longer exist when a run has to plan again.
  options.on_progress = {};
  tuning::ReusedChoice choice = std::move(first.reused);
  plans.push_back(std::make_unique<ShapePlan>(std::move(first), options, context, *registry));
  choices.push_back({log2_elements(plan().dims), std::move(choice)});
  dump(plan().runner->built());
}

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::inputs_in_order(
    const std::map<std::string, AnyOrTensor>& given) const {
  std::vector<Tensor> ordered;
  ordered.reserve(plan().runner->built().graph.inputs.size());
  size_t known = 0;
  for (size_t index = 0; index < plan().inputs.size(); ++index) {
    const ValueDescription& input = plan().inputs[index];
    const auto found = given.find(input.name);
    if (found == given.end()) {
      if (input.is_read && !is_optional(input) &&
          !plan().runner->io_binding().is_input_bound(index)) {
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
  if (known != given.size()) {
    for (const auto& [input_name, tensor] : given) input_named(input_name);
  }
  // The plan of a family has more inputs, which are bound.
  ordered.resize(plan().runner->built().graph.inputs.size());
  return ordered;
}

size_t Executor::State::input_named(const std::string& name) const {
  return find_named(plan().inputs, name, "input");
}

size_t Executor::State::output_named(const std::string& name) const {
  return find_named(plan().outputs, name, "output");
}

StepRecord Executor::State::record_of(const PlanEvent& event) const {
  const PlanStep& step = plan().description.steps[event.step];
  return {.node = step.name,
          .op = step.op,
          .backend = step.backend,
          .algorithm = step.algorithm,
          .duration = event.duration,
          .enqueue = event.enqueue,
          .device = plan().runner->device_of(event.step),
          .flops = step.flops,
          .bytes = step.bytes};
}

void Executor::State::take_nested_records(size_t step, std::chrono::nanoseconds start,
                                          std::vector<StepRecord>& records) const {
  for (const std::unique_ptr<ShapePlan>& made : plans) {
    const std::vector<std::shared_ptr<PlannedBodies>>& bodies = made->runner->built().bodies;
    if (step < bodies.size() && bodies[step] != nullptr) bodies[step]->take_records(start, records);
  }
}

// A recorded run of the current plan, whose steps it writes to `steps`.
class Executor::State::Recording {
 public:
  explicit Recording(Executor::State& state) : state_(state) {
    state_.plan().update_description(state_.context.pool().threads(), *state_.registry);
    // An earlier run may have failed.
    for (size_t step = 0; step < state_.plan().description.steps.size(); ++step) {
      state_.take_nested_records(step, {}, state_.steps);
    }
    state_.steps.clear();
    state_.context.set_recording(true);
  }
  ~Recording() { state_.context.set_recording(false); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  PlanWatcher watcher() {
    return [this](const PlanEvent& event) {
      StepRecord& record = state_.steps.emplace_back(state_.record_of(event));
      record.start = event.start - start_;
      state_.take_nested_records(event.step, record.start, state_.steps);
    };
  }

 private:
  Executor::State& state_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(std::unique_ptr<Deferred> deferred) : deferred_(std::move(deferred)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

Executor::State& Executor::state() const {
  if (state_) return *state_;
  throw Error(ErrorKind::InvalidArgument, "executor",
              "expected one with a plan, found one without shapes: run it once, or give bind() the "
              "shapes of the inputs");
}

bool Executor::Deferred::is_late() const {
  return time_limit_seconds > 0 && since_run.read().seconds > time_limit_seconds;
}

void Executor::Deferred::cancel() {
  is_cancelled = true;
  if (ExecutionContext* const bound = context) bound->cancel();
}

void Executor::Deferred::check_shapes(const std::map<std::string, Dims>& shapes) const {
  for (const ValueDescription& input : inputs) {
    const auto bound = options.shapes.find(input.name);
    const bool is_fixed = options.run.fixed_shapes && bound != options.shapes.end();
    if (!is_fixed || shapes.at(input.name) == bound->second) continue;
    throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                "expected " + dims_text(bound->second) +
                    ", as it was bound with fixed_shapes, found " +
                    dims_text(shapes.at(input.name)));
  }
  const DeclaredShapes declared = model->loaded.declared_shapes(options);
  for (const ValueDescription& input : inputs) {
    const auto given = shapes.find(input.name);
    if (given != shapes.end()) declared.check_range(input, given->second);
  }
}

template <class AnyOrTensor>
void Executor::bind_first(const std::map<std::string, AnyOrTensor>& given) {
  deferred_->is_cancelled = false;
  deferred_->since_run = Stopwatch();
  BindOptions options = deferred_->options;
  const auto note_shape = [&](const std::string& name, const AnyTensor& tensor) {
    const auto input = std::ranges::find(deferred_->inputs, name, &ValueDescription::name);
    if (input != deferred_->inputs.end() && has_no_shape(*input)) return;
    options.shapes[name] = dims_of(tensor);
  };
  for (const auto& [name, tensor] : deferred_->bound_inputs) note_shape(name, tensor);
  for (const auto& [name, tensor] : given) note_shape(name, tensor);
  deferred_->check_shapes(options.shapes);
  for (const ValueDescription& input : deferred_->inputs) {
    const bool is_given =
        given.contains(input.name) || deferred_->bound_inputs.contains(input.name);
    if (!input.is_read || is_given || is_optional(input)) continue;
    for (const auto& [name, tensor] : given) find_named(deferred_->inputs, name, "input");
    throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                "expected a tensor (" + input.text + "), found none given");
  }
  Executor bound = deferred_->model->bind(options, {});
  if (deferred_->is_cancelled) {
    throw Error(ErrorKind::Cancelled, "run", "the run was cancelled while it bound the model");
  }
  if (deferred_->is_late()) {
    throw Error(ErrorKind::Cancelled, "run",
                "the time limit of " + std::to_string(deferred_->time_limit_seconds) +
                    " s passed while the run bound the model; what was measured is kept");
  }
  if (deferred_->time_limit_seconds > 0) bound.set_time_limit(deferred_->time_limit_seconds);
  bound.record_steps(deferred_->is_recording);
  for (const auto& [name, memory] : deferred_->bound_inputs) bound.bind_input(name, memory);
  for (const auto& [name, memory] : deferred_->bound_outputs) bound.bind_output(name, memory);
  deferred_->bound_inputs.clear();
  deferred_->bound_outputs.clear();
  deferred_->context = &bound.state_->context;
  state_ = std::move(bound.state_);
}

template <class AnyOrTensor>
void Executor::State::select_plan(const std::map<std::string, AnyOrTensor>& given) {
  select_plan([&](size_t index) -> const Dims* {
    const ValueDescription& input = plan().inputs[index];
    const auto found = given.find(input.name);
    if (found != given.end()) {
      check_kind({input, plan().input_forms[index]}, found->second);
      return has_no_shape(input) ? nullptr : &dims_of(found->second);
    }
    return memory.input_dims(index);
  });
}

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::run(const std::map<std::string, AnyOrTensor>& given) {
  // Begins before planning, so that cancel() and the time limit also apply to it.
  const ExecutionContext::ActiveRun turn(context);
  if (swap) swap_before_run();
  select_plan(given);
  const std::vector<Tensor> ordered = inputs_in_order(given);
  if (!is_recording) return plan().runner->run(ordered);
  Recording recording(*this);
  return plan().runner->run(ordered, recording.watcher());
}

std::vector<Tensor> Executor::State::run_in_order(std::span<const Tensor> inputs,
                                                  const PlanWatcher& watcher) {
  const ExecutionContext::ActiveRun turn(context);
  if (swap) swap_before_run();
  const auto dims_at = [&](size_t index) -> const Dims* {
    return has_no_shape(plan().inputs[index]) ? nullptr : &inputs[index].dims();
  };
  select_plan(dims_at);
  for (size_t index = 0; declared.are_fixed() && index < inputs.size(); ++index) {
    const Dims* const dims = declared.is_read(index) ? dims_at(index) : nullptr;
    if (dims == nullptr || *dims == plan().dims[index]) continue;
    throw Error(ErrorKind::InvalidArgument, "input '" + plan().inputs[index].name + "'",
                "expected " + plan().inputs[index].text + ", found " +
                    std::string(name(inputs[index].type())) + " " + dims_text(*dims));
  }
  if (watcher) plan().update_description(context.pool().threads(), *registry);
  const size_t count = plan().runner->built().graph.inputs.size();
  if (count == inputs.size()) return plan().runner->run(inputs, watcher);
  // The plan of a family has more inputs, which are bound.
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.resize(count);
  return plan().runner->run(all, watcher);
}

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  if (!state_) bind_first(inputs);
  const ShapePlan& plan = state().plan();
  for (size_t index = 0; index < plan.output_forms.size(); ++index) {
    if (!plan.output_forms[index]) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + plan.outputs[index].name + "'",
                "run() gives dense outputs, but this one was bound in " +
                    text(*plan.output_forms[index]) + ": call run_any()");
  }
  return state().run(inputs);
}

std::vector<AnyTensor> Executor::run_any(const std::map<std::string, AnyTensor>& inputs) {
  if (!state_) bind_first(inputs);
  std::vector<Tensor> results = state().run(inputs);
  const ShapePlan& plan = state().plan();
  std::vector<AnyTensor> given;
  for (size_t index = 0; index < results.size(); ++index) {
    const std::optional<SparseForm> form =
        index < plan.output_forms.size() ? plan.output_forms[index] : std::nullopt;
    given.push_back(give({plan.outputs[index], form}, std::move(results[index])));
  }
  return given;
}

void Executor::bind_input(const std::string& name, const AnyTensor& memory) {
  if (!state_) {
    find_named(deferred_->inputs, name, "input");
    deferred_->bound_inputs.insert_or_assign(name, memory);
    return;
  }
  state().memory.bind_input(state().plan(), state().input_named(name), memory);
}

void Executor::bind_output(const std::string& name, Tensor memory) {
  if (!state_) {
    find_named(deferred_->outputs, name, "output");
    deferred_->bound_outputs.insert_or_assign(name, std::move(memory));
    return;
  }
  state().memory.bind_output(state().plan(), state().output_named(name), std::move(memory));
}

void Executor::clear_bindings() {
  if (state_) return state().memory.clear(state().plan());
  deferred_->bound_inputs.clear();
  deferred_->bound_outputs.clear();
}

void Executor::State::run_bound() {
  const ExecutionContext::ActiveRun turn(context);
  if (swap) swap_before_run();
  if (!memory.is_complete()) {
    select_plan(std::map<std::string, Tensor>());
    memory.check_complete(plan());
  }
  if (!is_recording) return plan().runner->run_bound();
  Recording recording(*this);
  plan().runner->run_bound(recording.watcher());
}

void Executor::run_bound() {
  if (!state_) bind_first(std::map<std::string, Tensor>());
  state().run_bound();
}

void Executor::cancel() {
  // Another thread may be in the first run, which sets `state_`.
  if (deferred_) return deferred_->cancel();
  state_->context.cancel();
}

std::string Executor::explain_unusable() const {
  return state_ ? state_->plan().runner->explain_unusable() : "";
}

void Executor::set_time_limit(double seconds) {
  if (!(seconds >= 0)) {
    throw Error(ErrorKind::InvalidArgument, "time limit",
                "expected 0 (none) or more seconds, found " + std::to_string(seconds));
  }
  if (!state_) {
    deferred_->time_limit_seconds = seconds;
    return;
  }
  const std::chrono::duration<double> limit(std::min(seconds, kMaxSeconds));
  state().context.set_time_limit(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
}

void Executor::wait_for_swap() {
  if (!state_ || !state_->swap) return;
  state().swap->wait();
  state().take_swap();
}

double Executor::measure_dispatch_ns() { return state().plan().runner->measure_dispatch_ns(); }

const std::vector<ValueDescription>& Executor::inputs() const {
  return !state_ ? deferred_->inputs : state_->plan().inputs;
}
const std::vector<ValueDescription>& Executor::outputs() const {
  return !state_ ? deferred_->outputs : state_->plan().outputs;
}
int Executor::threads() const {
  return !state_ ? deferred_->threads : state_->context.pool().threads();
}
const PlanDescription& Executor::plan() const { return state().described_plan(); }

const PlanDescription& Executor::State::described_plan() {
  ShapePlan& current = plan();
  current.update_description(context.pool().threads(), *registry);
  current.description.nested_steps.clear();
  for (const std::shared_ptr<PlannedBodies>& bodies : current.runner->built().bodies) {
    if (bodies != nullptr) bodies->describe(current.description.nested_steps);
  }
  return current.description;
}

ShapesDescription Executor::shapes() const {
  if (!state_) return {};
  ShapesDescription shapes{.arena_bytes = state().context.arena_bytes()};
  for (const std::unique_ptr<ShapePlan>& plan : state().plans) {
    ShapePlanDescription& described = shapes.plans.emplace_back();
    for (size_t index = 0; index < plan->inputs.size(); ++index) {
      if (!state().declared.is_read(index)) continue;
      described.shapes.emplace(plan->inputs[index].name, plan->dims[index]);
    }
    described.arena_bytes = plan->runner->built().plan.arena_bytes;
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
  for (const std::shared_ptr<const Plugin>& plugin : state().plan().runner->built().plugins) {
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
      state().plan().runner->built().kernels;
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
  std::call_once(state().are_costs_written, [&] {
    // If the plan came from a cache, the prices are in the cache record: bind() did not collect
    // them.
    const tuning::CostTable& costs =
        state().is_plan_cached ? state().cache->contents().found.costs : state().costs;
    if (state().has_prices) state().costs_text = tuning::write_cost_table(costs);
  });
  return state().costs_text;
}
const std::vector<StageRecord>& Executor::stages() const {
  return !state_ ? deferred_->no_stages : state_->stages;
}
void Executor::record_steps(bool is_on) {
  (state_ ? state_->is_recording : deferred_->is_recording) = is_on;
}
const std::vector<StepRecord>& Executor::steps() const {
  return !state_ ? deferred_->no_steps : state_->steps;
}

}  // namespace tessera
