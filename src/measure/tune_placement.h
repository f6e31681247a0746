// Tunes a graph: measures candidates, chooses among them, and compares runs of whole plans.
#pragma once

#include "choose/price_offers.h"
#include "measure/measurement_loop.h"
#include "measure/pricing_options.h"
#include "place/placement.h"
#include "tessera/tessera.h"

namespace tessera {

// Whether a graph takes so little time that tuning it gets little effort. `in_order` is the choice
// without prices, which is predicted to take `seconds`.
bool is_short(const Placement& in_order, double seconds, const PricingOptions& options);

struct TunedPlacement {
  Placement placement;  // its kernels are built
  // If requested, and if the kernels of `placement` are slow to build: a placement that starts
  // sooner. Its kernels are built too. Else empty.
  Placement startup_plan;
  // The newest prices, for which candidates may be chosen, and the cheapest placement by these.
  SolvedTask solved;
  PlacementDescription description;
  TuningDescription tuning;
};

// 1. Solves with bounds as prices of unmeasured candidates, measures what the solution uses, and
//    solves again, until the solution uses only measured candidates. So candidates that cannot win
//    are never measured.
// 2. Runs the whole plan to get the times of its steps in context, and solves again with these;
//    three rounds at most.
// 3. Runs the plans of the solution, of a greedy choice, of the choice without prices and of each
//    backend alone (the contenders) in turns. The steps of those near the fastest are then timed in
//    context too, and the placements that are chosen with these times become contenders; a few
//    rounds at most. The fastest wins; of equally fast ones, the first.
// If build time counts (PricingOptions::runs_per_build), all prices include the amortized part, and
// so do the times by which contenders are compared. Placements that exceed the memory budget are
// neither chosen nor run.
//
// `options.tune.budget_seconds` limits the effort. If it is 0, graphs that take less than
// 0.2 ms get half a second at most, and they are measured in this process if
// `options.measures_short_here`. When the time is over, the choice uses what is known by then.
// Steps 2 and 3 are skipped if nothing was measured for this graph, if a value is stored sparse, or
// if the plan cannot run on the inputs.
//
// At the end, prices of unmeasured candidates are guesses again. `context.problem` must outlive the
// result.
TunedPlacement tune_placement(const TuningContext& context, const PricingOptions& options);

}  // namespace tessera
