// Type and shape inference; specialise.h replaces symbols by numbers.
#pragma once

#include "base/log.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// The rule's input for value `id` of `graph`; an omitted input if it is none(). `graph` must
// outlive it.
ops::InferInput infer_input(const Graph& graph, ValueId id);

struct InferOptions {
  // Treat a declared shape of an inner value that contradicts the inferred one as an error.
  bool is_strict = false;
};

// Runs the ops' rules in graph order. The types that `graph` already has are the model's
// declarations. A contradicting element type throws InvalidModel naming both; a contradicting shape
// of an inner value or output is a warning in `log`, and the inferred one is used; if a rule cannot
// infer something (unknown rank or dimension), the declaration is used. Tracks elements of small
// integer tensors (Value::elements). Also infers nested graphs as far as their captures allow.
Graph infer_types(const Graph& graph, const ops::Registry& registry, const Log& log,
                  const InferOptions& options = {});

}  // namespace tessera
