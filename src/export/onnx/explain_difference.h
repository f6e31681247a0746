// Compares a graph with the result of writing and reading it.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera::onnx_export {

// The first difference between the two graphs: in nodes, their ops, versions, attributes, metadata,
// the names and types of the values that they read and make, in inputs, outputs and constants; ""
// if there is none. Values are compared by name, because ids may differ, and so are dimensions.
std::string explain_difference(const Graph& written, const Graph& read);

}  // namespace tessera::onnx_export
