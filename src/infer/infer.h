// Type and shape inference; specialise.h replaces symbols by numbers.
#pragma once

#include <set>
#include <string>

#include "base/errors/log.h"
#include "graph/graph.h"
#include "graph/type.h"
#include "ops/registry.h"

namespace tessera {

// The type of a value, from the one that the model declares and the one that its node's rule
// infers.
struct MergedType {
  enum class Outcome : uint8_t { Agrees, ElementContradicts, ShapeContradicts };

  Type type;
  Outcome outcome = Outcome::Agrees;
};

// The more precise of both, part by part. If they contradict, the inferred part wins and `outcome`
// says so. A declared number replaces an inferred symbol only if the symbol is not derived from one
// of `input_symbols` (the symbols of the graph's inputs): otherwise a stale "1" that an exporter
// wrote for "batch" would end up in folded constants. Of two symbols the inferred one wins, because
// equal inferred symbols are equal numbers, which exporters do not guarantee for theirs.
MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols);

// The rule's input for value `id` of `graph`; an omitted input if it is none(). `graph` must
// outlive it.
ops::InferInput infer_input(const Graph& graph, ValueId id);

struct InferOptions {
  // Treat a declared shape of an inner value that contradicts the inferred one as an error.
  bool is_strict = false;
  // Nodes with nested graphs keep what they have in this graph, of which the other one is a
  // specialised copy: nested graphs, and the types of outputs.
  const Graph* nested_from = nullptr;
  // Computes what a model computes from sizes, by reference kernels: Value::numbers.
  bool follows_numbers = false;
  int depth = 0;  // how many graphs contain this one
};

// Runs the ops' rules in graph order. The types that `graph` already has are the model's
// declarations. A contradicting element type throws InvalidModel naming both; a contradicting shape
// of an inner value or output is a warning in `log`, and the inferred one is used; if a rule cannot
// infer something (unknown rank or dimension), the declaration is used. Tracks elements of small
// integer tensors (Value::elements). Also infers nested graphs as far as their captures allow.
Graph infer_types(const Graph& graph, const ops::Registry& registry, const Log& log,
                  const InferOptions& options = {});

}  // namespace tessera
