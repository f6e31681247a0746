#include "engine/value_step.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/containers/at.h"
#include "base/errors/check.h"
#include "base/memory/alignment.h"
#include "engine/plan_runner.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// Whether it is of numbers or bools: a plan can have memory for its elements.
bool has_planned_elements(const Tensor& tensor) { return element_bytes(tensor.type()) > 0; }

// The tensor in memory that every kernel accepts.
Tensor aligned(Tensor tensor) {
  if (!has_planned_elements(tensor)) return tensor;
  if (is_aligned_to(tensor.data(), TESSERA_ALIGNMENT_BYTES)) return tensor.owned();
  return tensor.copied();
}

}  // namespace

ValueStep::ValueStep(const BuiltPlan& built, size_t step)
    : built_(built),
      step_(built.plan.steps[step]),
      node_(built.graph[built.offers.candidates[at(step_.candidate)].nodes.front()]),
      op_(built.registry->of(node_)) {
  for (const ValueId input : node_.inputs) {
    inputs_.push_back(input.is_none() ? kLeftOut : port_of(input));
  }
  for (const Body& body : node_.bodies) {
    std::vector<int>& ports = captured_.emplace_back();
    for (const Capture& capture : body.graph.captures) ports.push_back(port_of(capture.outer));
  }
  for (size_t output = 0; output < node_.outputs.size(); ++output) {
    if (!node_.outputs[output].is_none()) outputs_.push_back(output);
  }
  ports_.resize(step_.inputs.size());
  prepared_ = ops::prepare_node(op_, built.graph, node_);
  if (node_.bodies.empty()) return;
  if (step < built.bodies.size()) bodies_ = built.bodies[step].get();
  TESSERA_CHECK(bodies_ != nullptr, "nested graphs are planned with the plan that contains them");
}

int ValueStep::port_of(ValueId value) const {
  const std::vector<CandidateInput>& ports = built_.offers.candidates[at(step_.candidate)].inputs;
  const auto found = std::ranges::find(ports, value, &CandidateInput::value);
  TESSERA_CHECK(found != ports.end(), "what a node reads is a port of its candidate");
  return static_cast<int>(found - ports.begin());
}

Tensor ValueStep::value_of(size_t port, const tessera_buffer& argument,
                           std::span<const Tensor> dynamic, const IoBinding& io) const {
  const int index = step_.inputs[port];
  const PlanBuffer& buffer = built_.plan.buffers[at(index)];
  if (buffer.kind == Kind::Dynamic) return dynamic[at(owner_of(built_.plan, index))];
  if (buffer.kind == Kind::Input && !buffer.type) return io.input(at(buffer.index));
  // Others may write to this memory after the run.
  return {static_cast<DataType>(argument.data_type),
          std::vector<int64_t>(argument.dims, argument.dims + argument.rank), nullptr,
          argument.data};
}

void ValueStep::give(size_t port, Tensor result, const tessera_buffer& argument,
                     std::span<Tensor> dynamic) {
  const int index = step_.outputs[port].buffer;
  const PlanBuffer& buffer = built_.plan.buffers[at(index)];
  if (buffer.kind == Kind::Dynamic) {
    dynamic[at(index)] = aligned(std::move(result));
    return;
  }
  const std::span expected(argument.dims, static_cast<size_t>(argument.rank));
  if (static_cast<int32_t>(result.type()) != argument.data_type ||
      !std::ranges::equal(result.dims(), expected)) {
    throw Error(ErrorKind::InvalidArgument,
                location_of(node_) + ", output '" + built_.graph[buffer.value].name + "'",
                "expected " + text(built_.graph[buffer.value].type) + ", found " +
                    std::string(name(result.type())) + " " + dims_text(result.dims()));
  }
  if (result.bytes() > 0 && result.data() != argument.data) {
    std::memcpy(argument.data, result.data(), static_cast<size_t>(result.bytes()));
  }
}

// Nested graphs belong to the run of `context` as long as this object exists.
class ValueStep::OuterRun {
 public:
  OuterRun(ValueStep& step, ExecutionContext& context) : step_(step) {
    step_.context_ = &context;
    if (step_.bodies_ != nullptr) step_.bodies_->set_outer(&context);
  }
  ~OuterRun() {
    step_.context_ = nullptr;
    if (step_.bodies_ != nullptr) step_.bodies_->set_outer(nullptr);
  }
  OuterRun(const OuterRun&) = delete;
  OuterRun& operator=(const OuterRun&) = delete;

 private:
  ValueStep& step_;
};

void ValueStep::run(std::span<const tessera_buffer> inputs, std::span<const tessera_buffer> outputs,
                    std::span<Tensor> dynamic, const IoBinding& io, ExecutionContext& context) {
  for (size_t port = 0; port < ports_.size(); ++port) {
    ports_[port] = value_of(port, inputs[port], dynamic, io);
  }
  given_.clear();
  for (const int port : inputs_) {
    given_.push_back(port == kLeftOut ? Tensor() : ports_[at(port)]);
  }
  results_.assign(node_.outputs.size(), Tensor());
  const OuterRun outer(*this, context);
  ops::run_on_values(op_, {.node = node_,
                           .inputs = given_,
                           .outputs = results_,
                           .bodies = bodies_ == nullptr ? nullptr : this,
                           .max_iterations = built_.max_iterations,
                           .kept = &prepared_,
                           .pool = &context.pool()});
  for (size_t port = 0; port < outputs_.size(); ++port) {
    give(port, std::move(results_[outputs_[port]]), outputs[port], dynamic);
  }
  for (Tensor& value : ports_) value = Tensor();
  given_.clear();
}

void ValueStep::fail(size_t body, const Error& error) const {
  throw Error(error.kind(),
              location_of(node_) + ", " + node_.bodies[body].attribute + ", " + error.where(),
              error.message());
}

std::vector<Tensor> ValueStep::run(size_t body, std::span<const Tensor> inputs) {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  for (const int port : captured_[body]) all.push_back(ports_[at(port)]);
  try {
    if (!context_->is_running()) {
      throw Error(ErrorKind::Cancelled, "run", "it was cancelled before this nested graph");
    }
    return bodies_->run(body, all);
  } catch (const Error& error) {
    fail(body, error);
  }
}

// Addresses of all inputs, of which those of captures stay.
class ValueStep::Repeated : public ops::RepeatedRuns {
 public:
  Repeated(const ValueStep& step, size_t body, PlanRunner& runner)
      : step_(step), body_(body), runner_(runner), watcher_(step.bodies_->watcher(body)) {
    for (const int port : step.captured_[body]) captured_.push_back(step.ports_[at(port)].data());
  }

  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    if (inputs_.empty()) {
      inputs_.assign(inputs.begin(), inputs.end());
      inputs_.insert(inputs_.end(), captured_.begin(), captured_.end());
    }
    std::ranges::copy(inputs, inputs_.begin());
    try {
      if (!step_.context_->is_running()) {
        throw Error(ErrorKind::Cancelled, "run", "it was cancelled before this nested graph");
      }
      runner_.run_at(inputs_, outputs, watcher_);
    } catch (const Error& error) {
      step_.fail(body_, error);
    }
  }

 private:
  const ValueStep& step_;
  size_t body_;
  PlanRunner& runner_;
  const PlanWatcher& watcher_;
  std::vector<const void*> captured_;
  std::vector<const void*> inputs_;
};

std::unique_ptr<ops::RepeatedRuns> ValueStep::repeat(size_t body, std::span<const Tensor> inputs,
                                                     std::span<const Tensor> outputs) {
  if (!std::ranges::all_of(inputs, has_planned_elements) ||
      !std::ranges::all_of(outputs, has_planned_elements) ||
      !std::ranges::all_of(captured_[body],
                           [&](int port) { return has_planned_elements(ports_[at(port)]); })) {
    return nullptr;
  }
  PlanRunner* const runner = bodies_->repeatable(body);
  return runner == nullptr ? nullptr : std::make_unique<Repeated>(*this, body, *runner);
}

}  // namespace tessera
