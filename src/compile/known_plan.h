// The parts of a plan that was found before: its backends, candidates and conversions.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "compile/build_plan.h"
#include "graph/graph.h"
#include "price/cost_table.h"

namespace tessera {

// The backends that `plan` needs, each once.
std::vector<std::string> backends_of(const tuning::KnownPlan& plan);

// Asks the plug-ins only for the candidates of `plan`, for all threads and for one, in the order of
// collect_offers_by_threads().
Offers collect_known_offers(const Graph& graph, const LayoutTable& layouts,
                            const PlanOptions& options, const BuildServices& services,
                            const tuning::KnownPlan& plan);

// Prices with which make_plan() uses exactly the conversions of `plan`, by value.
std::vector<std::vector<double>> conversion_prices(const tuning::KnownPlan& plan,
                                                   const Graph& graph, const LayoutTable& layouts);

// Compares the kernels of `plan` with the reference, except those that `costs` knows to be right
// here, and adds the results to `costs`. Returns a sentence that says which kernel is wrong, or why
// it could not be checked; "" if all may run. `graph` must have the elements of all its weights.
std::string explain_wrong_kernel(const Graph& graph, const PlanOptions& options,
                                 const BuildServices& services, const tuning::KnownPlan& plan,
                                 tuning::CostTable& costs);

// Records in `plan` what make_plan() decided by prices when it laid out `built`: the conversions,
// and the backends that define layouts or conversions.
void note_layout(const BuiltPlan& built, tuning::KnownPlan& plan);

}  // namespace tessera
