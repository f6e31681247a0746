// A plan that was found before: built without asking for anything that is not part of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/build_plan.h"
#include "price/cost_table.h"

namespace tessera {

// The backends without which `plan` cannot be built, each once.
std::vector<std::string> backends_of(const tuning::KnownPlan& plan);

// What build_plan() comes to where it takes `plan`, to the bit; but other candidates are not asked
// for, so that nothing is known of them: neither prices nor refusals. `plugins` are those of
// backends_of(), in order of preference. nullopt where a candidate of the plan is not offered (any
// more) or cannot be built, where the plan does not fit the graph or the budget, and for graphs
// with sparse values.
std::optional<BuildOutcome> build_known_plan(const Graph& graph, const ops::Registry& registry,
                                             std::vector<std::shared_ptr<const Plugin>> plugins,
                                             PackStore& packs, ThreadPool& pool,
                                             const PlanOptions& options,
                                             const tuning::KnownPlan& plan,
                                             const StageWatcher& watcher);

// Compares with the reference what `plan` runs and `costs` does not know to be right here, and adds
// what it finds. Gives which kernel is wrong, or why it could not be seen, in a sentence; "" where
// all may run. `graph` has the elements of all its weights.
std::string explain_wrong_kernel(const Graph& graph, const ops::Registry& registry,
                                 const std::vector<std::shared_ptr<const Plugin>>& plugins,
                                 ThreadPool& pool, const PlanOptions& options,
                                 const tuning::KnownPlan& plan, tuning::CostTable& costs);

// Notes in `plan`, which `built` was laid out by, what make_plan() decided by prices.
void note_layout(const BuiltPlan& built, tuning::KnownPlan& plan);

}  // namespace tessera
