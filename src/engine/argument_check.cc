#include "engine/argument_check.h"

#include <algorithm>
#include <string>

#include "base/containers/at.h"
#include "infer/infer.h"
#include "ops/evaluate.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Whether everything that an op's rule can ask about the input is known: a constant, or a tensor of
// known size and floating-point type that is neither a list nor a single number. Avoids evaluating
// the rule for nearly all nodes of a network.
bool is_plain(const Value& value) {
  if (value.is_constant()) return true;
  if (!value.type.is_known_tensor()) return false;
  const std::vector<int64_t> dims = dims_from(*value.type.shape);
  return ops::kFloatTypes.contains(value.type.element) && dims.size() > 1 &&
         element_count(dims) != 1;
}

bool agrees(const Dim& planned, const Dim& actual) {
  return !planned.is_known() || !actual.is_known() || planned == actual;
}

bool agrees(const Type& planned, const Type& actual) {
  if (!planned.shape || !actual.shape) return true;
  return std::ranges::equal(*planned.shape, *actual.shape,
                            [](const Dim& one, const Dim& other) { return agrees(one, other); });
}

// Rethrows `error`, which the rule of `node` threw, as InvalidArgument if the refused values come
// from the caller.
[[noreturn]] void rethrow_as_invalid_argument(const Node& node, const Error& error) {
  const bool is_callers_fault =
      error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::InvalidArgument;
  if (!is_callers_fault) throw error;
  if (error.where().starts_with(location_of(node))) {
    throw Error(ErrorKind::InvalidArgument, error.where(), error.message());
  }
  // Errors of the arithmetic on dimensions do not name the node.
  throw Error(ErrorKind::InvalidArgument, location_of(node),
              error.where() + ": " + error.message());
}

Tensor tensor_over(const tessera_buffer& buffer, bool can_be_read) {
  return {static_cast<DataType>(buffer.data_type),
          std::vector<int64_t>(buffer.dims, buffer.dims + buffer.rank), nullptr,
          can_be_read ? buffer.data : nullptr};
}

}  // namespace

bool needs_check(const Graph& graph, const Node& node, const ops::Registry& registry) {
  const ops::Op& op = registry.of(node);
  if (op.infer == nullptr) return false;
  const bool asks_for_lists_only = op.domain.empty() && (op.traits & ops::kSizedByData) == 0;
  const bool is_plain_node =
      asks_for_lists_only &&
      std::ranges::all_of(node.inputs,
                          [&](ValueId id) { return id.is_none() || is_plain(graph[id]); }) &&
      std::ranges::all_of(node.outputs, [&](ValueId id) {
        return id.is_none() || graph[id].type.is_known_tensor();
      });
  if (is_plain_node) return false;
  std::vector<ops::InferInput> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(infer_input(graph, id));
    if (!id.is_none() && !inputs.back().type.is_known_tensor()) return true;
  }
  const ops::Answer answer = ops::ask(op, node, std::move(inputs));
  if (!answer.is_final) return true;
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index].is_none()) continue;
    if (answer.outputs[index].type != graph[node.outputs[index]].type) return true;
  }
  return false;
}

std::vector<ops::InferOutput> check_arguments(const Graph& graph, const Node& node,
                                              const ops::Registry& registry,
                                              std::vector<ops::InferInput> inputs) {
  std::vector<ops::InferOutput> outputs;
  try {
    outputs = ops::infer(registry.of(node), node, std::move(inputs));
  } catch (const Error& error) {
    rethrow_as_invalid_argument(node, error);
  }
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index].is_none()) continue;
    const Value& planned = graph[node.outputs[index]];
    if (agrees(planned.type, outputs[index].type)) continue;
    throw Error(ErrorKind::InvalidArgument, location_of(node) + ", output '" + planned.name + "'",
                "expected " + text(planned.type) +
                    ", as the model declares or was bound for, found " + text(outputs[index].type) +
                    " for these inputs");
  }
  return outputs;
}

std::unique_ptr<const ArgumentCheck> ArgumentCheck::of(const BuiltPlan& built,
                                                       const ExecutionStep& step) {
  if (step.kind != ExecutionStep::Kind::Kernel) return nullptr;
  std::vector<NodeId> nodes = built.offers.candidates[at(step.candidate)].nodes;
  if (std::ranges::none_of(nodes, [&](NodeId node) {
        return needs_check(built.graph, built.graph[node], *built.registry);
      })) {
    return nullptr;
  }
  std::ranges::sort(nodes, {}, &NodeId::index);
  return std::unique_ptr<const ArgumentCheck>(new ArgumentCheck(built, step, std::move(nodes)));
}

// Whether a rule can read the elements: they are in the default layout and without strides. Of
// other tensors, it gets only the size.
bool ArgumentCheck::can_be_read(int buffer) const {
  const PlanBuffer& described = built_.plan.buffers[at(buffer)];
  return described.layout == kDefaultLayout && described.strides.empty();
}

ops::InferInput ArgumentCheck::known_of(ValueId id, const KnownValues& known) const {
  if (id.is_none()) return {};
  const auto found = std::ranges::find(known, id, &KnownValues::value_type::first);
  return found == known.end() ? infer_input(built_.graph, id) : found->second;
}

void ArgumentCheck::run(std::span<const tessera_buffer> inputs) const {
  const Candidate& candidate = built_.offers.candidates[at(step_.candidate)];
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());  // InferInput points to its tensor
  KnownValues known;
  for (size_t port = 0; port < inputs.size(); ++port) {
    const ValueId value = candidate.inputs[port].value;
    if (built_.graph[value].is_constant()) continue;
    tensors.push_back(tensor_over(inputs[port], can_be_read(step_.inputs[port])));
    known.emplace_back(value, ops::infer_input(tensors.back()));
  }
  for (const NodeId id : nodes_) {
    const Node& node = built_.graph[id];
    std::vector<ops::InferInput> arguments;
    for (const ValueId input : node.inputs) arguments.push_back(known_of(input, known));
    std::vector<ops::InferOutput> outputs =
        check_arguments(built_.graph, node, *built_.registry, std::move(arguments));
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      known.emplace_back(node.outputs[index],
                         ops::InferInput{.is_present = true,
                                         .type = std::move(outputs[index].type),
                                         .elements = std::move(outputs[index].elements)});
    }
  }
}

}  // namespace tessera
