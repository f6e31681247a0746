// Builds Tessera's Graph from an ONNX graph, its functions and weights.
#pragma once

#include <set>
#include <string>

#include "base/log.h"
#include "graph/graph.h"
#include "import/onnx/functions.h"
#include "import/onnx/tensors.h"
#include "onnx.pb.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

// Builds the model's graph. Throws InvalidModel for values that are read but not made, made twice,
// or made by a node of a nested graph although a graph around it has one of that name, and for
// cycles; Unsupported for unknown ops and, after the whole graph has been read, for known ops that
// cannot run. The initializers named in `free_inputs` are left out, so the graph's inputs of these
// names are fed.
Graph build_graph(const onnx::GraphProto& proto, Functions& functions, TensorReader& tensors,
                  const ops::Registry& registry, const Log& log,
                  const std::set<std::string>& free_inputs = {});

}  // namespace tessera::onnx_import
