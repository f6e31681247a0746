// Weights whose elements were released once every kernel had packed them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "graph/graph.h"

namespace tessera {

// A weight whose elements somebody needs, though they were released: the model has to be read again
// before the work is tried once more. A result, not an error.
struct ReleasedWeight {
  std::string name;
};

// The first of `values` that is a constant without elements.
std::optional<ReleasedWeight> find_released_weight(const Graph& graph,
                                                   std::span<const ValueId> values);

// The first constant without elements that something reads.
std::optional<ReleasedWeight> find_released_weight(const Graph& graph);

}  // namespace tessera
