// Chooses for each domain an operator set that gives every node its version.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::onnx_export {

// Operator sets by domain; always includes "", ONNX's own. Considers nested graphs too. If several
// sets fit, chooses the one nearest to 13 for ONNX's own domain, which most programs support, and
// the oldest for other domains. Throws Unsupported, naming two nodes, if none fits.
std::map<std::string, int> choose_opsets(const Graph& graph, const ops::Registry& registry);

}  // namespace tessera::onnx_export
