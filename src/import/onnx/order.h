// Topological sort of the nodes of a graph.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

// Names that no node makes do not constrain the order; if several nodes make a name, the first one
// counts.
Order order_nodes(const std::vector<NodeNames>& nodes);

}  // namespace tessera::onnx_import
