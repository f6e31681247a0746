// Gives every node of a graph a unique name.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/functions.h"

namespace tessera::onnx_import {

// Assigns names in the order of the calls.
class NodeNamer {
 public:
  // The node's own name. If it has none or the name is taken, that of its first output; if that is
  // taken too, the same with "#2", "#3", ... appended.
  std::string choose(const PendingNode& node);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> counts_;
};

}  // namespace tessera::onnx_import
