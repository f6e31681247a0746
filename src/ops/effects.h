// Which attributes and inputs a kernel has to know beyond the types of the node's inputs and
// outputs. A plug-in that never asked for one of these computes something else than the model says;
// see backend/node_reads.h.
#pragma once

#include <cstddef>
#include <string_view>

#include "graph/graph.h"
#include "ops/op.h"

namespace tessera::ops {

// Whether the attribute may decide elements of an output that is present. False if its value is the
// default, or if the types tell what it says: with keepdims or without, a reduction computes the
// same elements. Requires an attribute that the node has.
bool attribute_has_effect(const Op& op, const Node& node, std::string_view name);

// Whether an optional input that is present may do so. False for required ones, because no kernel
// of the op can be written without these.
bool input_has_effect(const Op& op, const Node& node, size_t index);

}  // namespace tessera::ops
