#include "rewrite/replacements.h"

#include "base/check.h"

namespace tessera {

void Replacements::add(ValueId from, ValueId to) {
  TESSERA_CHECK(of(to) != from, "a value that stands in for itself would never be found");
  targets_[static_cast<size_t>(from.index)] = to;
}

ValueId Replacements::of(ValueId id) const {
  while (!id.is_none() && !targets_[static_cast<size_t>(id.index)].is_none()) {
    id = targets_[static_cast<size_t>(id.index)];
  }
  return id;
}

void Replacements::apply(Graph& graph) const {
  for (Node& node : graph.nodes) {
    if (node.is_removed) continue;
    for (ValueId& id : node.inputs) id = of(id);
    for (ValueId& id : node.outputs) id = of(id);
    for (Body& body : node.bodies) {
      for (Capture& capture : body.graph.captures) capture.outer = of(capture.outer);
    }
  }
  for (ValueId& id : graph.outputs) id = of(id);
  for (ValueId& id : graph.kept) id = of(id);
}

}  // namespace tessera
