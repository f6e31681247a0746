// Converts a Graph to ONNX's messages.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "onnx.pb.h"

namespace tessera::onnx_export {

// `graph` must come from with_file_names() in export.cc. Throws Unsupported if an input has no
// element type.
onnx::ModelProto write_model(const Graph& graph, const std::map<std::string, int>& opsets);

}  // namespace tessera::onnx_export
