// Builds a plan that was found before. Plug-ins are asked only for the candidates of that plan.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/build_plan.h"
#include "price/cost_table.h"

namespace tessera {

// The backends that `plan` needs, each once.
std::vector<std::string> backends_of(const tuning::KnownPlan& plan);

// Builds the same plan, bit for bit, as build_plan() does if it chooses `plan`. Plug-ins are not
// asked for other candidates, so the result has neither prices nor refusals. `plugins` are those of
// backends_of(), in order of preference. Returns nullopt if a candidate of the plan is not offered
// (any more) or cannot be built, if the plan does not fit the graph or the memory budget, and for
// graphs with sparse values.
std::optional<BuildOutcome> build_known_plan(const Graph& graph, const ops::Registry& registry,
                                             std::vector<std::shared_ptr<const Plugin>> plugins,
                                             PackStore& packs, ThreadPool& pool,
                                             const PlanOptions& options,
                                             const tuning::KnownPlan& plan,
                                             const StageWatcher& watcher);

// Compares the kernels of `plan` with the reference, except those that `costs` knows to be right
// here, and adds the results to `costs`. Returns a sentence that says which kernel is wrong, or why
// it could not be checked; "" if all may run. `graph` must have the elements of all its weights.
std::string explain_wrong_kernel(const Graph& graph, const ops::Registry& registry,
                                 const std::vector<std::shared_ptr<const Plugin>>& plugins,
                                 ThreadPool& pool, const PlanOptions& options,
                                 const tuning::KnownPlan& plan, tuning::CostTable& costs);

// Records in `plan` what make_plan() decided by prices when it laid out `built`: the conversions,
// and the backends that define layouts or conversions.
void note_layout(const BuiltPlan& built, tuning::KnownPlan& plan);

}  // namespace tessera
