// Compares the arguments that a step gets in a run with the assumptions of its plan. The plan
// derived these from the ops' type rules, so the rules are evaluated again with the actual
// arguments.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/built_plan.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Whether the type rule of `node` could give another result, or refuse, when everything is known in
// the run: if the size of an input is unknown, if elements that the rule asked for are unknown, or
// if an output has a size that only the model declares. `graph` is the graph as it was planned.
bool needs_check(const Graph& graph, const Node& node, const ops::Registry& registry);

// Returns the types of the outputs of `node` for `inputs`, by its op's type rule. Throws
// InvalidArgument at the node or its input if the rule refuses the inputs, and at an output if its
// type contradicts the one in `graph`, for which memory was allocated.
std::vector<ops::InferOutput> check_arguments(const Graph& graph, const Node& node,
                                              const ops::Registry& registry,
                                              std::vector<ops::InferInput> inputs);

// Checks the nodes of a step. Refers to the plan, which must outlive this object and not move.
class ArgumentCheck {
 public:
  // nullptr if no node of the step needs a check.
  static std::unique_ptr<const ArgumentCheck> of(const BuiltPlan& built, const ExecutionStep& step);

  // `inputs` are the arguments of the step; only their sizes and elements are still unchecked.
  // Throws like check_arguments().
  void run(std::span<const tessera_buffer> inputs) const;

 private:
  // The values that the step reads or makes, as far as they are known by now.
  using KnownValues = std::vector<std::pair<ValueId, ops::InferInput>>;

  ArgumentCheck(const BuiltPlan& built, const ExecutionStep& step, std::vector<NodeId> nodes)
      : built_(built), step_(step), nodes_(std::move(nodes)) {}

  bool can_be_read(int buffer) const;
  ops::InferInput known_of(ValueId id, const KnownValues& known) const;

  const BuiltPlan& built_;
  const ExecutionStep& step_;
  std::vector<NodeId> nodes_;  // each after the nodes whose outputs it reads
};

}  // namespace tessera
