// Executor: checks what the caller gives, and has the runner of src/engine run it.
#include <algorithm>
#include <utility>

#include "api/exchanged_layouts.h"
#include "api/executor_state.h"
#include "base/likely_name.h"
#include "tessera/backend_abi.h"

namespace tessera {
namespace {

// So many nanoseconds fit 64 bits.
constexpr double kMostSeconds = 1e9;

std::string list_names(const std::vector<ValueDescription>& values) {
  std::string names;
  for (const ValueDescription& value : values) {
    names += (names.empty() ? "'" : ", '") + value.name + "'";
  }
  return names.empty() ? "none" : names;
}

// Throws InvalidArgument where none of `values` has the name.
size_t find_named(const std::vector<ValueDescription>& values, const std::string& name,
                  const std::string& what) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.name == name; });
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  std::vector<std::string> names;
  for (const ValueDescription& value : values) names.push_back(value.name);
  throw Error(ErrorKind::InvalidArgument, what + " '" + name + "'",
              "the model has no such " + what + "; it has " + list_names(values) +
                  did_you_mean(name, names));
}

}  // namespace

Executor::State::State(std::shared_ptr<const ops::Registry> ops, const BindOptions& bound)
    : registry(std::move(ops)),
      options(bound),
      place(bound.threads, bound.keeps_denormals ? Denormals::Keep : Denormals::Flush) {
  // Who watches this bind may be gone when it is planned anew.
  options.on_progress = {};
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
      if (input.is_read && !plan().runner->exchange().is_input_bound(index)) {
        throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                    "expected a tensor (" + input.text + "), found none given");
      }
      ordered.emplace_back();
      continue;
    }
    ++known;
    if (!input.is_read) {
      check_kind({input, plan().input_forms[index]}, found->second);
      check_declared(input, dims_of(found->second));
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
                   .flops = step.flops,
                   .bytes = step.bytes});
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

template <class AnyOrTensor>
void Executor::State::settle(const std::map<std::string, AnyOrTensor>& given) {
  settle([&](size_t index) -> const Dims* {
    const ValueDescription& input = plan().inputs[index];
    const auto found = given.find(input.name);
    if (found != given.end()) {
      check_kind({input, plan().input_forms[index]}, found->second);
      return &dims_of(found->second);
    }
    return bound_inputs[index] ? &dims_of(*bound_inputs[index]) : nullptr;
  });
}

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::run(const std::map<std::string, AnyOrTensor>& given) {
  // Whoever ends this run ends also what is done before its first step.
  const Workplace::Turn turn(place);
  if (swap) swap_before_run();
  settle(given);
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
  state_->bind_input(state_->input_named(name), memory);
}

void Executor::bind_output(const std::string& name, Tensor memory) {
  state_->bind_output(state_->output_named(name), std::move(memory));
}

void Executor::clear_bindings() {
  state_->unbind_memory();
  state_->bound_inputs.assign(state_->bound_inputs.size(), std::nullopt);
  state_->bound_outputs.clear();
  state_->is_settled = true;
}

void Executor::State::check_all_bound() const {
  const std::vector<ValueDescription>& inputs = plan().inputs;
  const std::vector<ValueDescription>& outputs = plan().outputs;
  const Exchange& exchange = plan().runner->exchange();
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (!inputs[index].is_read || exchange.is_input_bound(index)) continue;
    throw Error(ErrorKind::InvalidArgument, "input '" + inputs[index].name + "'",
                "expected all inputs to be bound, found none bound for this one");
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (exchange.is_result_bound(index)) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + outputs[index].name + "'",
                "expected all outputs to be bound, found none bound for this one");
  }
}

void Executor::State::run_bound() {
  const Workplace::Turn turn(place);
  if (swap) swap_before_run();
  if (!is_all_bound) {
    settle(std::map<std::string, Tensor>());
    check_all_bound();
    is_all_bound = true;
  }
  if (!is_recording) return plan().runner->run_bound();
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  plan().runner->run_bound([&](const PlanEvent& event) { record(event, start); });
}

void Executor::run_bound() { state_->run_bound(); }
void Executor::cancel() { state_->place.cancel(); }

void Executor::set_time_limit(double seconds) {
  if (!(seconds >= 0)) {
    throw Error(ErrorKind::InvalidArgument, "time limit",
                "expected 0 (none) or more seconds, found " + std::to_string(seconds));
  }
  const std::chrono::duration<double> limit(std::min(seconds, kMostSeconds));
  state_->place.set_time_limit(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
}

double Executor::measure_dispatch_ns() { return state_->plan().runner->measure_dispatch_ns(); }

const std::vector<ValueDescription>& Executor::inputs() const { return state_->plan().inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->plan().outputs; }
int Executor::threads() const { return state_->place.pool().threads(); }
const PlanDescription& Executor::plan() const { return state_->plan().description; }

ShapesDescription Executor::shapes() const {
  ShapesDescription shapes{.arena_bytes = state_->place.arena_bytes()};
  for (const std::unique_ptr<ShapePlan>& plan : state_->plans) {
    ShapePlanDescription& described = shapes.plans.emplace_back();
    for (size_t index = 0; index < plan->inputs.size(); ++index) {
      if (!state_->is_shape_read[index]) continue;
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

const std::string& Executor::costs() const {
  std::call_once(state_->are_costs_written, [&] {
    // Where a cache knew the plan, nobody has asked for prices yet.
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
