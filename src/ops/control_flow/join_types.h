// The types of values that come from one of several places: from a branch, from the previous
// iteration, or out of a list.
#pragma once

#include <functional>
#include <optional>

#include "graph/type.h"

namespace tessera::ops {

// Makes the symbol of a dimension that is not the same everywhere, by its axis.
using UnknownDim = std::function<Dim(size_t axis)>;

// A type that has the values of both: a dimension that differs becomes unknown, and a rank that
// differs, too. nullopt if the values are of different kinds, or of different elements. An optional
// has the values of its content. An unknown type leaves the other one.
std::optional<Type> join_types(const Type& left, const Type& right, const UnknownDim& unknown);

// `type` outside of the graph in which it was inferred: dimensions that only that graph knows (the
// symbols of unknown_dim(), which are unique in one graph) become unknown.
Type outside_of_graph(Type type, const UnknownDim& unknown);

// The type of an element of a list: all symbols become unknown, as elements may differ in them.
Type element_of_list(Type content, const UnknownDim& unknown);

}  // namespace tessera::ops
