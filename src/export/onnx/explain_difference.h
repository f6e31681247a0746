// Whether a graph that was written and read again is still the same.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera::onnx_export {

// The first difference between the two: in nodes, their ops, versions, attributes, notes, and the
// names and types of the values that they read and make, in inputs, outputs and constants; "" where
// there is none. Values are compared by name, as ids may differ.
std::string explain_difference(const Graph& written, const Graph& read);

}  // namespace tessera::onnx_export
