// Values that stand in for others, noted one by one and applied to the whole graph at once, so that
// a pass with many changes stays linear.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tessera {

class Replacements {
 public:
  explicit Replacements(const Graph& graph) : targets_(graph.values.size()) {}

  // From now on of(from) is what of(to) is. `from` must not stand in for `to` already.
  void add(ValueId from, ValueId to);

  // The value that stands in for `id`: itself where nothing was noted.
  ValueId of(ValueId id) const;

  // Makes every reader read the replacement, and every node that is not removed write it.
  void apply(Graph& graph) const;

 private:
  std::vector<ValueId> targets_;
};

}  // namespace tessera
