// Kernels that take sizes when they run (tessera_built_for), built for other sizes than they run
// on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// `graph`, whose types are inferred, with other dimensions of its inputs: equal ones stay equal,
// and 0, 1 and more stay apart. Draws them from `seed`. nullopt if a type rule refuses them.
std::optional<Graph> with_other_sizes(const Graph& graph, const ops::Registry& registry,
                                      uint64_t seed);

// `candidate` of `graph` with the kernel of the same candidate among `others`, those of a graph
// with other sizes; nullopt if there is none that promises to serve for the sizes of `graph`.
std::optional<Candidate> with_kernel_of(const std::vector<Candidate>& others, const Graph& other,
                                        const Candidate& candidate, const Graph& graph);

}  // namespace tessera
