#include "infer/equal_names.h"

#include "base/log.h"
#include "graph/dim_names.h"
#include "infer/infer.h"
#include "tessera/error.h"

namespace tessera {

Graph with_equal_names(const Graph& graph, const ops::Registry& registry) {
  Graph equal = graph;
  bool is_changed = false;
  for (const ValueId id : equal.inputs) {
    if (!equal[id].type.shape) continue;
    for (Dim& dim : *equal[id].type.shape) {
      const std::string name = name_of(dim);
      if (name.empty() || dim.symbol() == name) continue;
      dim = Dim::symbol(name);
      is_changed = true;
    }
  }
  if (!is_changed) return equal;
  try {
    return infer_types(equal, registry, Log([](const std::string&) {}));
  } catch (const Error&) {
    return graph;
  }
}

}  // namespace tessera
