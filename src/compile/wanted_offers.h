// Decides which offers the plug-ins are asked for, for one graph.
#pragma once

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "compile/build_plan.h"

namespace tessera {

// Collects offers for all threads. If prices are known, also those for one thread; with a reused
// choice only if that choice uses some. Candidates that need a measured price to be chosen, and
// that take a tenth of a second or more to build, are requested only if they can be measured:
//  - the choice for other shapes uses some;
//  - a node is pinned, or everything is to be measured, or the costs already name plans;
//  - prices are measured, and the graph runs long enough to get time for measuring;
//  - prices are measured and the graph is too short for that, but some node has candidates only of
//    the last plug-in, the reference.
// If a graph has only nodes that end before a second thread could start, only offers for one thread
// are requested: without prices, and, if they are shorter still, for such a short graph whose
// prices are measured.
Offers collect_wanted_offers(const Graph& graph, const LayoutTable& layouts,
                             const PlanOptions& options, const BuildServices& services);

}  // namespace tessera
