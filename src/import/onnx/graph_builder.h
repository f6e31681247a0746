// From an ONNX graph, its functions and weights to Tessera's Graph.
#pragma once

#include "base/log.h"
#include "graph/graph.h"
#include "import/onnx/functions.h"
#include "import/onnx/tensors.h"
#include "onnx.pb.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

// Builds the model's graph. Throws InvalidModel for values that nobody makes, or that are made
// twice or shadowed, and for cycles; Unsupported for ops that are not known, and, once the whole
// graph has been read, for ops that are known but cannot run.
Graph build_graph(const onnx::GraphProto& proto, Functions& functions, TensorReader& tensors,
                  const ops::Registry& registry, const Log& log);

}  // namespace tessera::onnx_import
