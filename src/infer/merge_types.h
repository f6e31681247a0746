// Merges the type that the model declares for a value with the type that its node's rule infers.
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

// The more precise of both, part by part. If they contradict, the inferred part wins and `outcome`
// says so. A declared number replaces an inferred symbol only if the symbol is not derived from one
// of `input_symbols` (the symbols of the graph's inputs): otherwise a stale "1" that an exporter
// wrote for "batch" would end up in folded constants. Of two symbols the inferred one wins, because
// equal inferred symbols are equal numbers, which exporters do not guarantee for theirs.
MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols);

}  // namespace tessera
