// Gives every node of a graph a name of its own.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/functions.h"

namespace tessera::onnx_import {

// Hands out names in the order of the calls.
class NodeNamer {
 public:
  // The node's own name; where it has none, or that is taken, its first output's; where that is
  // taken too, the same with "#2", "#3", ... behind it.
  std::string choose(const PendingNode& node);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> counts_;
};

}  // namespace tessera::onnx_import
