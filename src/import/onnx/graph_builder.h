// Builds Tessera's Graph from an ONNX graph, its functions and weights.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "graph/graph.h"
#include "import/onnx/names/functions.h"
#include "import/onnx/tensors.h"
#include "onnx.pb.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

// The names that one node makes and reads, including its nested graphs. Omitted names are empty.
struct NodeNames {
  std::vector<std::string> made;
  std::vector<std::string> read;
};

struct Order {
  std::vector<size_t> nodes;  // topologically sorted; ties keep the given order
  std::vector<size_t>
      cycle;  // set instead if there is a cycle: each node reads a value of the one before
};

// Sorts the nodes of a graph topologically (order.cc). Names that no node makes do not constrain
// the order; if several nodes make a name, the first one counts.
Order order_nodes(const std::vector<NodeNames>& nodes);

// Builds the model's graph. Throws InvalidModel for values that are read but not made, made twice,
// or made by a node of a nested graph although a graph around it has one of that name, and for
// cycles; Unsupported for unknown ops and, after the whole graph has been read, for known ops that
// cannot run. The initializers named in `free_inputs` are left out, so the graph's inputs of these
// names are fed.
Graph build_graph(const onnx::GraphProto& proto, Functions& functions, TensorReader& tensors,
                  const ops::Registry& registry, const Log& log,
                  const std::set<std::string>& free_inputs = {});

}  // namespace tessera::onnx_import
