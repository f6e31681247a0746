// Renames values so that names identify them as ids do here, as a file requires.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::onnx_export {

// Returns an equivalent graph with these properties: a captured value has the same name inside and
// outside; no other value of a nested graph has a name of an enclosing graph; the outputs of a
// graph have distinct names and are made in it. If two outputs are one value, or an output is
// captured, Identity nodes are added. `opset` is the version of ONNX's own domain, for their
// version.
Graph with_file_names(const Graph& graph, const ops::Registry& registry, int opset);

}  // namespace tessera::onnx_export
