#include "engine/interpreter.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "engine/argument_check.h"
#include "ops/evaluate.h"
#include "tessera/error.h"

namespace tessera {
namespace {

void check_fits(int64_t bytes, const std::string& where) {
  if (bytes < kLargeAllocationBytes) return;
  const int64_t available = available_memory_bytes();
  if (bytes <= available) return;
  throw Error(ErrorKind::OutOfMemory, where,
              "expected to need at most the " + std::to_string(available) +
                  " bytes that are available, found a need of " + std::to_string(bytes) + " bytes");
}

}  // namespace

// The nested graphs of a node, each run by an interpreter of its own.
class Interpreter::Bodies : public ops::BodyRunner {
 public:
  Bodies(const Node& node, const ops::Registry& registry, int threads, Denormals denormals)
      : where_(location_of(node)) {
    for (const Body& body : node.bodies) {
      ClosedBody closed = close_body(body.graph);
      captured_.push_back(std::move(closed.captured));
      runners_.push_back(
          std::make_unique<Interpreter>(std::move(closed.graph), registry, threads, denormals));
      names_.push_back(body.attribute);
    }
  }

  // By id: the values of the enclosing graph during the next runs.
  void capture(std::span<const Tensor> values) { values_ = values; }

  std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) override {
    std::vector<Tensor> all(inputs.begin(), inputs.end());
    for (const ValueId id : captured_[body]) all.push_back(values_[static_cast<size_t>(id.index)]);
    try {
      return runners_[body]->run(all);
    } catch (const Error& error) {
      throw Error(error.kind(), where_ + ", " + names_[body] + ", " + error.where(),
                  error.message());
    }
  }

 private:
  std::string where_;
  std::vector<std::string> names_;
  std::vector<std::vector<ValueId>> captured_;
  std::vector<std::unique_ptr<Interpreter>> runners_;
  std::span<const Tensor> values_;
};

Interpreter::~Interpreter() = default;

Interpreter::Interpreter(Graph graph, const ops::Registry& registry, int threads,
                         Denormals denormals)
    : graph_(std::move(graph)),
      registry_(registry),
      schedule_(make_schedule(graph_)),
      denormals_(denormals),
      pool_(threads, denormals) {
  for (const Schedule::Step& step : schedule_.steps) {
    const Node& node = graph_[step.node];
    runs_on_values_.push_back(ops::runs_on_values(registry_.of(node), graph_, node));
    needs_check_.push_back(!runs_on_values_.back() && needs_check(graph_, node, registry_));
  }
  bodies_.resize(schedule_.steps.size());
  prepared_.resize(schedule_.steps.size());
  if (schedule_.peak_bytes) check_fits(*schedule_.peak_bytes, "intermediate values");
}

std::vector<Tensor> Interpreter::make_outputs(const Node& node, std::span<const Tensor> inputs,
                                              bool needs_check) const {
  std::vector<ops::InferOutput> actual;
  if (needs_check) {
    std::vector<ops::InferInput> known;
    for (const Tensor& input : inputs) known.push_back(ops::infer_input(input));
    actual = check_arguments(graph_, node, registry_, std::move(known));
  }
  std::vector<Tensor> outputs(node.outputs.size());
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (node.outputs[index].is_none()) continue;
    const Type& type = needs_check ? actual[index].type : graph_[node.outputs[index]].type;
    TESSERA_CHECK(type.is_known_tensor(), "known inputs make every output type known");
    if (needs_check) {
      const int64_t bytes = *type_bytes(type);
      check_fits(bytes, location_of(node));
    }
    outputs[index] = Tensor(type.element, dims_from(*type.shape));
  }
  return outputs;
}

std::vector<Tensor> Interpreter::run_on_values(size_t step, std::span<const Tensor> inputs,
                                               std::span<const Tensor> values) {
  const Node& node = graph_[schedule_.steps[step].node];
  if (!node.bodies.empty() && bodies_[step] == nullptr) {
    bodies_[step] = std::make_unique<Bodies>(node, registry_, threads(), denormals_);
  }
  if (bodies_[step] != nullptr) bodies_[step]->capture(values);
  std::vector<Tensor> outputs(node.outputs.size());
  ops::run_on_values(registry_.of(node), {.node = node,
                                          .inputs = inputs,
                                          .outputs = outputs,
                                          .bodies = bodies_[step].get(),
                                          .kept = &prepared_[step],
                                          .pool = &pool_});
  return outputs;
}

std::vector<Tensor> Interpreter::run(std::span<const Tensor> inputs, const StepWatcher& watcher) {
  TESSERA_CHECK(inputs.size() == graph_.inputs.size(), "one tensor for each graph input");
  std::vector<Tensor> values(graph_.values.size());
  const auto value = [&](ValueId id) -> Tensor& { return values[static_cast<size_t>(id.index)]; };
  for (size_t index = 0; index < inputs.size(); ++index)
    value(graph_.inputs[index]) = inputs[index];
  for (size_t index = 0; index < values.size(); ++index) {
    if (graph_.values[index].is_constant()) values[index] = elements_of(graph_.values[index]);
  }

  std::vector<Tensor> node_inputs;
  for (size_t index = 0; index < schedule_.steps.size(); ++index) {
    const Schedule::Step& step = schedule_.steps[index];
    const Node& node = graph_[step.node];
    node_inputs.clear();
    for (const ValueId id : node.inputs) node_inputs.push_back(id.is_none() ? Tensor() : value(id));
    std::vector<Tensor> outputs;
    if (!runs_on_values_[index]) {
      outputs = make_outputs(node, node_inputs, needs_check_[index]);
    }
    const auto start = std::chrono::steady_clock::now();
    if (runs_on_values_[index]) {
      outputs = run_on_values(index, node_inputs, values);
    } else {
      ops::run_kernel(registry_.of(node), node, node_inputs, outputs, pool_, &prepared_[index]);
    }
    if (watcher &&
        !watcher({node, node_inputs, outputs, start, std::chrono::steady_clock::now() - start})) {
      return {};
    }
    for (size_t output = 0; output < outputs.size(); ++output) {
      if (!node.outputs[output].is_none()) value(node.outputs[output]) = std::move(outputs[output]);
    }
    for (const ValueId id : step.released) value(id) = Tensor();
  }

  std::vector<Tensor> results;
  for (const ValueId id : graph_.outputs) results.push_back(value(id));
  for (const ValueId id : graph_.kept) results.push_back(value(id));
  return results;
}

}  // namespace tessera
