// Converts graphs and loaded models to the descriptions of tessera/descriptions.h.
// describe_plan.h does it for plans.
#pragma once

#include <vector>

#include "compile/compile.h"
#include "engine/schedule.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

ValueDescription describe_value(const Graph& graph, ValueId id);
// Sets is_read, and index_limit for inputs that are only used as an index.
std::vector<ValueDescription> describe_inputs(const Graph& graph);
std::vector<ValueDescription> describe_values(const Graph& graph, const std::vector<ValueId>& ids);

// `graph` is the graph of `model`, or a specialised version of it.
ModelDescription describe_model(const LoadedModel& model, const Graph& graph,
                                const ops::Registry& registry);

}  // namespace tessera
