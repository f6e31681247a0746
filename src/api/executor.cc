// Executor: checks what the caller gives, and has the runner of src/engine run it.
#include <algorithm>
#include <utility>

#include "api/exchanged_layouts.h"
#include "api/executor_state.h"
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
  throw Error(ErrorKind::InvalidArgument, what + " '" + name + "'",
              "the model has no such " + what + "; it has " + list_names(values));
}

}  // namespace

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::inputs_in_order(
    const std::map<std::string, AnyOrTensor>& given) const {
  std::vector<Tensor> ordered;
  size_t known = 0;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const ValueDescription& input = inputs[index];
    const auto found = given.find(input.name);
    if (found == given.end()) {
      if (input.is_read && !runner.exchange().is_input_bound(index)) {
        throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                    "expected a tensor (" + input.text + "), found none given");
      }
      ordered.emplace_back();
      continue;
    }
    ++known;
    ordered.push_back(input.is_read ? feed({input, input_forms[index]}, found->second) : Tensor());
  }
  if (known == given.size()) return ordered;
  for (const auto& [input_name, tensor] : given) input_named(input_name);
  return ordered;
}

size_t Executor::State::input_named(const std::string& name) const {
  return find_named(inputs, name, "input");
}

size_t Executor::State::output_named(const std::string& name) const {
  return find_named(outputs, name, "output");
}

void Executor::State::record(const PlanEvent& event,
                             std::chrono::steady_clock::time_point run_start) {
  const PlanStep& step = plan.steps[event.step];
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

std::vector<Tensor> Executor::State::run(const std::vector<Tensor>& ordered) {
  if (!is_recording) return runner.run(ordered);
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  return runner.run(ordered, [&](const PlanEvent& event) { record(event, start); });
}

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  for (size_t index = 0; index < state_->output_forms.size(); ++index) {
    if (!state_->output_forms[index]) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + state_->outputs[index].name + "'",
                "run() gives dense outputs, but this one was bound in " +
                    text(*state_->output_forms[index]) + ": call run_any()");
  }
  return state_->run(state_->inputs_in_order(inputs));
}

std::vector<AnyTensor> Executor::run_any(const std::map<std::string, AnyTensor>& inputs) {
  std::vector<Tensor> results = state_->run(state_->inputs_in_order(inputs));
  std::vector<AnyTensor> given;
  for (size_t index = 0; index < results.size(); ++index) {
    const std::optional<SparseForm> form =
        index < state_->output_forms.size() ? state_->output_forms[index] : std::nullopt;
    given.push_back(give({state_->outputs[index], form}, std::move(results[index])));
  }
  return given;
}

void Executor::bind_input(const std::string& name, const AnyTensor& memory) {
  const size_t index = state_->input_named(name);
  const ValueDescription& input = state_->inputs[index];
  Tensor fed = feed({input, state_->input_forms[index]}, memory);
  state_->runner.exchange().bind_input(index, std::move(fed));
  state_->is_all_bound = false;
}

void Executor::bind_output(const std::string& name, Tensor memory) {
  const size_t index = state_->output_named(name);
  const ValueDescription& output = state_->outputs[index];
  const std::string where = "output '" + name + "'";
  if (output.layout != TESSERA_LAYOUT_DEFAULT) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a dense output, found one that was bound in " + output.layout +
                    ": take it from what run_any() gives");
  }
  const std::string found =
      std::string(tessera::name(memory.type())) + " " + dims_text(memory.dims());
  const bool is_known = output.shape && std::all_of(output.shape->begin(), output.shape->end(),
                                                    [](const Dimension& dim) { return dim.value; });
  if (is_known && found != output.text) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory for " + output.text + ", found " + found);
  }
  if (!memory.is_writable()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory that may be written (Tensor::over), found a tensor to read from");
  }
  state_->runner.exchange().bind_result(index, std::move(memory));
  state_->is_all_bound = false;
}

void Executor::clear_bindings() {
  Exchange& exchange = state_->runner.exchange();
  for (size_t index = 0; index < state_->inputs.size(); ++index) exchange.bind_input(index, {});
  for (size_t index = 0; index < state_->outputs.size(); ++index) exchange.bind_result(index, {});
  state_->is_all_bound = false;
}

void Executor::State::check_all_bound() const {
  const Exchange& exchange = runner.exchange();
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
  if (!is_all_bound) check_all_bound();
  is_all_bound = true;
  if (!is_recording) return runner.run_bound();
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  runner.run_bound([&](const PlanEvent& event) { record(event, start); });
}

void Executor::run_bound() { state_->run_bound(); }
void Executor::cancel() { state_->runner.cancel(); }

void Executor::set_time_limit(double seconds) {
  if (!(seconds >= 0)) {
    throw Error(ErrorKind::InvalidArgument, "time limit",
                "expected 0 (none) or more seconds, found " + std::to_string(seconds));
  }
  const std::chrono::duration<double> limit(std::min(seconds, kMostSeconds));
  state_->runner.set_time_limit(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
}

double Executor::measure_dispatch_ns() { return state_->runner.measure_dispatch_ns(); }

const std::vector<ValueDescription>& Executor::inputs() const { return state_->inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->outputs; }
int Executor::threads() const { return state_->runner.threads(); }
const PlanDescription& Executor::plan() const { return state_->plan; }
const std::string& Executor::costs() const {
  std::call_once(state_->are_costs_written, [&] {
    const tuning::CostTable& costs = state_->costs;
    const bool is_known = state_->plan.placement.has_value();
    if (is_known) state_->costs_text = tuning::write_cost_table(costs);
  });
  return state_->costs_text;
}
const std::vector<StageRecord>& Executor::stages() const { return state_->stages; }
void Executor::record_steps(bool is_on) { state_->is_recording = is_on; }
const std::vector<StepRecord>& Executor::steps() const { return state_->steps; }

}  // namespace tessera
