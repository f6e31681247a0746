#include "import/onnx/node_names.h"

#include <algorithm>

namespace tessera::onnx_import {

std::string NodeNamer::choose(const PendingNode& node) {
  std::string own = node.proto->name();
  if (!own.empty()) own = node.frame->prefix + own;
  if (!own.empty() && taken_.insert(own).second) return own;
  const auto output = std::find_if(node.outputs.begin(), node.outputs.end(),
                                   [](const std::string& name) { return !name.empty(); });
  std::string base = output != node.outputs.end() ? *output
                     : own.empty()                ? node.proto->op_type()
                                                  : own;
  if (!base.empty() && taken_.insert(base).second) return base;
  int& count = counts_.try_emplace(base, 1).first->second;
  while (true) {
    std::string numbered = base + "#" + std::to_string(++count);
    if (taken_.insert(numbered).second) return numbered;
  }
}

}  // namespace tessera::onnx_import
