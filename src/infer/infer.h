// Gives every value of a graph its type; specialise.h replaces symbols by numbers.
#pragma once

#include "base/log.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// What a rule is told of value `id` of `graph`; nothing where it is left out. `graph` must outlive
// it.
ops::InferInput infer_input(const Graph& graph, ValueId id);

struct InferOptions {
  // A declared shape of an inner value that contradicts the inferred one is an error.
  bool is_strict = false;
};

// Runs the ops' rules from the inputs on. The types that `graph` already has are what the model
// declares: a contradicting element type throws InvalidModel naming both; a contradicting shape of
// an inner value or output is a warning in `log` and the inferred one counts; where a rule cannot
// tell (unknown rank or dimension) the declared one is taken. Elements of small integer tensors are
// carried along (Value::elements). Also infers nested graphs as far as their captures allow.
Graph infer_types(const Graph& graph, const ops::Registry& registry, const Log& log,
                  const InferOptions& options = {});

}  // namespace tessera
