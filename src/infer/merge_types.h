// Brings together what the model declares of a value and what its node's rule says.
#pragma once

#include <set>
#include <string>

#include "graph/type.h"

namespace tessera {

struct MergedType {
  enum class Outcome : uint8_t { Agrees, ElementContradicts, ShapeContradicts };

  Type type;
  Outcome outcome = Outcome::Agrees;
};

// The more precise of the two, part by part. Where they contradict, the inferred part counts and
// `outcome` tells so. A declared number replaces an inferred symbol only if the symbol cannot be
// traced to one of `input_symbols` (the symbols of the graph's inputs): an exporter's stale "1" in
// place of "batch" would otherwise be baked into folded constants. Of two symbols the inferred one
// is taken: equal inferred symbols are equal numbers, which no exporter promises of its own.
MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols);

}  // namespace tessera
