// Which operator set of each domain gives every node of a graph its version.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::onnx_export {

// By domain; always with "", ONNX's own. Nested graphs count too. Of several sets that fit, the one
// nearest to 13 for ONNX's own, which most programs can read, and the oldest for others. Throws
// Unsupported, naming two nodes, where none fits.
std::map<std::string, int> choose_opsets(const Graph& graph, const ops::Registry& registry);

}  // namespace tessera::onnx_export
