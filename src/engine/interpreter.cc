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
  const int64_t available = available_memory_bytes();
  if (bytes <= available) return;
  throw Error(ErrorKind::OutOfMemory, where,
              "expected to need at most the " + std::to_string(available) +
                  " bytes that are available, found a need of " + std::to_string(bytes) + " bytes");
}

}  // namespace

Interpreter::Interpreter(Graph graph, const ops::Registry& registry, int threads,
                         Denormals denormals)
    : graph_(std::move(graph)),
      registry_(registry),
      schedule_(make_schedule(graph_)),
      pool_(threads, denormals) {
  for (const Schedule::Step& step : schedule_.steps) {
    needs_check_.push_back(needs_check(graph_, graph_[step.node], registry_));
  }
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
      if (bytes >= kLargeAllocationBytes) check_fits(bytes, location_of(node));
    }
    outputs[index] = Tensor(type.element, dims_from(*type.shape));
  }
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
    std::vector<Tensor> outputs = make_outputs(node, node_inputs, needs_check_[index]);
    const auto start = std::chrono::steady_clock::now();
    ops::run_kernel(registry_.of(node), node, node_inputs, outputs, pool_);
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
