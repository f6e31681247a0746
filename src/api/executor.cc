// Executor: checks what the caller gives, and has the runner of src/engine run it.
#include <algorithm>
#include <utility>

#include "api/exchanged_layouts.h"
#include "api/executor_state.h"

namespace tessera {
namespace {

std::string list_names(const std::vector<ValueDescription>& values) {
  std::string names;
  for (const ValueDescription& value : values) {
    names += (names.empty() ? "'" : ", '") + value.name + "'";
  }
  return names.empty() ? "none" : names;
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
      if (input.is_read) {
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
  for (const auto& [input_name, tensor] : given) {
    const bool is_known = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const auto& input) { return input.name == input_name; });
    if (!is_known) {
      throw Error(ErrorKind::InvalidArgument, "input '" + input_name + "'",
                  "the model has no such input; it has " + list_names(inputs));
    }
  }
  return ordered;
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
