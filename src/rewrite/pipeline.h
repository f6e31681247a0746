// The ordered table of passes and the loop that runs them. passes.h declares the passes; each is
// in a file of its own.
#pragma once

#include <string>
#include <vector>

#include "base/threads/parallel.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

struct PassReport {
  std::string name;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  double seconds = 0;
  // One sentence per change: "node 'bn1' (BatchNormalization) folded into node 'conv1' (Conv)".
  std::vector<std::string> changes;
};

struct Rewritten {
  Graph graph;
  std::vector<PassReport> reports;
};

// The objects that a pass may use in addition to the graph.
struct PassContext {
  const ops::Registry& registry;
  ThreadPool& pool;
  std::vector<std::string>& changes;  // a pass appends one sentence per change
};

// A pass is a pure function. Graph outputs and Graph::kept keep their names and meaning. The result
// is legal except for nodes marked is_removed and dead values, which the loop compacts.
using PassFunction = Graph (*)(Graph graph, const PassContext& context);

struct Pass {
  const char* name;
  PassFunction run;
};

// Runs every pass of the table once, in order; after each one it compacts, verifies (in builds with
// TESSERA_CHECK), measures the time and reports. Types must be inferred.
Rewritten rewrite(Graph graph, const ops::Registry& registry, ThreadPool& pool);

}  // namespace tessera
