// The loop of measuring and choosing, from what was offered to a placement that was run.
#pragma once

#include "choose/price_offers.h"
#include "measure/measurement_loop.h"
#include "measure/pricing_options.h"
#include "place/placement.h"
#include "tessera/tessera.h"

namespace tessera {

struct TunedPlacement {
  Placement placement;  // whose kernels are built
  // Where these take long to build and it is wanted, one whose kernels take less, and are built
  // too; else nothing chosen.
  Placement startup_plan;
  PlacementDescription description;
  TuningDescription tuning;
};

// 1. Solves with bounds where nothing is measured, measures what the answer uses, and solves again,
//    until the answer rests on measurements: what cannot win is never measured.
// 2. Runs the whole plan: a step gets the time that it takes amid the others, and all is solved
//    again, three rounds at most.
// 3. Runs the plans of the solution, of a greedy choice, of the choice without prices and of each
//    backend alone by turns. Those that come near the fastest get times amid the others too, and
//    what is chosen by these runs against them, some rounds at most. The fastest wins; where
//    several are as fast, the first of them.
// Where building counts (PricingOptions::runs_per_build), its part is in all prices, and in what
// the plans that are run are compared by. What does not fit into the memory budget is neither
// chosen nor run. Effort is bounded by `options.tune.budget_seconds`; where that is 0, for graphs
// that take less than a millisecond by a tenth of a second. These are measured in this process;
// when that is spent, by what is known then. Steps 2 and 3 are left out where nothing was measured
// for this graph, where a value is stored sparsely, and where the plan cannot run on the inputs.
// Prices are guesses again at the end.
TunedPlacement tune_placement(const TuningContext& context, const PricingOptions& options);

}  // namespace tessera
