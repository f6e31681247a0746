// Holds what running shows of a step's arguments against what its plan was made for. All that a
// plan knows of them came from the ops' rules; so the rules are asked again, with what there is.
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

// Whether the rule of `node` could answer otherwise, or refuse, once all is known: the size of an
// input is not, or elements that it asked for, or an output has a size that only the model
// declares. `graph` as it was planned.
bool needs_check(const Graph& graph, const Node& node, const ops::Registry& registry);

// The types of the outputs of `node` for `inputs`, by its op's rule. Throws InvalidArgument at the
// node or its input where the rule refuses them, and at the output whose type contradicts the one
// that `graph` gives it, for which memory was laid out.
std::vector<ops::InferOutput> check_arguments(const Graph& graph, const Node& node,
                                              const ops::Registry& registry,
                                              std::vector<ops::InferInput> inputs);

// The same for the nodes of a step. Refers to the plan, which must outlive it and stay where it is.
class ArgumentCheck {
 public:
  // Null where no node of the step needs one.
  static std::unique_ptr<const ArgumentCheck> of(const BuiltPlan& built, const ExecutionStep& step);

  // `inputs` are the step's, complete but for what they are checked for. Throws as
  // check_arguments().
  void run(std::span<const tessera_buffer> inputs) const;

 private:
  // What is known by now of the values that the step reads or makes.
  using KnownValues = std::vector<std::pair<ValueId, ops::InferInput>>;

  ArgumentCheck(const BuiltPlan& built, const ExecutionStep& step, std::vector<NodeId> nodes)
      : built_(built), step_(step), nodes_(std::move(nodes)) {}

  bool can_be_read(int buffer) const;
  ops::InferInput known_of(ValueId id, const KnownValues& known) const;

  const BuiltPlan& built_;
  const ExecutionStep& step_;
  std::vector<NodeId> nodes_;  // each after those that it reads from
};

}  // namespace tessera
