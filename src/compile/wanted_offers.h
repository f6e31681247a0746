// What plug-ins are asked to offer for one graph.
#pragma once

#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "base/parallel.h"
#include "compile/build_plan.h"

namespace tessera {

// Offers for all threads; where prices are known also those for one, and what was chosen for other
// shapes only where that had some. What is chosen only by a
// measured price, and takes a tenth of a second and more to build, is asked for only where somebody
// could measure it:
//  - it was chosen for other shapes;
//  - a node is pinned, or all is to be measured, or the costs name plans already;
//  - or prices are measured, and the graph is not over so soon that it gets no time for that;
//  - or it is, but some node has nobody besides but the last plug-in, the reference.
// Such a graph whose nodes are each over before a second thread has started gets those for one
// thread alone.
Offers collect_wanted_offers(const Graph& graph, const ops::Registry& registry,
                             const std::vector<std::shared_ptr<const Plugin>>& plugins,
                             const LayoutTable& layouts, ThreadPool& pool,
                             const PlanOptions& options);

}  // namespace tessera
