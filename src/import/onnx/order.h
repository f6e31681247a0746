// Orders the nodes of a graph by what they read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tessera::onnx_import {

// What one node makes and reads, its nested graphs included. Names may be empty (left out).
struct NodeNames {
  std::vector<std::string> made;
  std::vector<std::string> read;
};

struct Order {
  std::vector<size_t> nodes;  // each after those whose values it reads, else in the given order
  std::vector<size_t> cycle;  // instead: nodes each of which reads a value of the one before
};

// Names that no node makes do not constrain the order; of several makers the first one counts.
Order order_nodes(const std::vector<NodeNames>& nodes);

}  // namespace tessera::onnx_import
