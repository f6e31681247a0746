// Makes a graph one that a file can spell out, where names say what ids say here.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::onnx_export {

// The same graph, in which a captured value has the name that it has outside, no other value of a
// nested graph has the name of one around it, and the outputs of a graph have names of their own
// and are made in it: where two are one value, or one is captured, Identity nodes are added.
// `opset` is ONNX's own, for their version.
Graph with_file_names(const Graph& graph, const ops::Registry& registry, int opset);

}  // namespace tessera::onnx_export
