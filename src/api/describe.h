// From the library's own structures to the plain ones of tessera/tessera.h.
#pragma once

#include <vector>

#include "compile/compile.h"
#include "engine/schedule.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

ValueDescription describe_value(const Graph& graph, ValueId id);
// Inputs know whether they are read and, where they only index, how far.
std::vector<ValueDescription> describe_inputs(const Graph& graph);
std::vector<ValueDescription> describe_values(const Graph& graph, const std::vector<ValueId>& ids);

// `graph` is that of `model`, or a specialised one.
ModelDescription describe_model(const LoadedModel& model, const Graph& graph,
                                const ops::Registry& registry);

}  // namespace tessera
