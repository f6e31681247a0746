// The implementation of the public handle Model: the three parts of a model, each with its own
// data, and what connects them. The loaded model (model_graph.h) knows no other part. The stored
// parts (stored_parts.h) use the loaded model. Planners (planner.h), one for each plan, use both.
// Each part is used through its public functions only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/state/model_graph.h"
#include "api/state/plan_swap.h"
#include "api/state/stage_clock.h"
#include "api/state/stored_parts.h"
#include "base/errors/log.h"
#include "base/threads/background_task.h"
#include "price/cost_table.h"
#include "store/cache_record.h"
#include "tessera/tessera.h"

namespace tessera {

// The files that a model keeps in the user's folder for later processes.
enum class Keeping : uint8_t {
  None,
  Index,  // an index of the model, if it is in a file, and its packs and kernels
};

// A plan that is made behind the runs of an executor. If neither member is set, kernels are
// compiled that a choice without prices left out.
struct BackgroundBuild {
  bool measures = false;  // what is not known; then chooses
  // The plan to build; with `measures`, only if measuring finds none.
  std::optional<tuning::KnownPlan> plan = {};
  // Measuring pauses while this returns true. Null: it never pauses.
  std::function<bool()> is_busy = {};
};

struct Model::State : std::enable_shared_from_this<Model::State> {
  State(ModelSource source, const LoadOptions& options, Keeping keeping);

  class Planner;
  class BackgroundBuilder;
  class Binder;
  class BundleWriter;
  class NestedPlan;
  class NestedPlans;

  // tessera::load(). `keeping` replaces LoadOptions::keeps_index.
  static Model load(ModelSource source, const LoadOptions& options, Keeping keeping);
  // Model::bind() with additional cache files, which are used for this call only.
  Executor bind(const BindOptions& wanted, const std::vector<LoadedCache>& more);
  std::unique_ptr<Executor::State> bind_state(const BindOptions& wanted,
                                              const std::vector<LoadedCache>& more);
  // bind(), if there are ranges of sizes.
  Executor bind_ranges(const BindOptions& wanted);
  // Plans the nested graphs of `node`, which is part of the bound graph `graph`. `options` are
  // those of the plan that contains the node. Binds those at once for which all sizes are known,
  // the others in their first run. Throws what bind() does, with the path of the node.
  // `more` is that of the outer bind. If `sizes_vary`, the plan is for other sizes than those of
  // `graph`, too, of which the nested graphs then know nothing.
  std::shared_ptr<PlannedBodies> plan_nested_graphs(const BindOptions& options, const Graph& graph,
                                                    const Node& node, bool sizes_vary,
                                                    const std::vector<LoadedCache>& more);
  // The plan that bind() would make.
  PlanResult plan(const BindOptions& wanted);
  // Makes `wanted`. Returns nullopt if measuring was cancelled, or found no plan and there is no
  // other; prices that were measured until then are kept. Measuring waits if another thread or
  // process measures the model. Throws Cancelled if another build is cancelled, Unsupported if the
  // known plan cannot be built any more, and the errors of building.
  std::optional<NextPlan> build_behind(const BindOptions& options, const BackgroundBuild& wanted,
                                       CancellationToken& end);

  Backends backends;
  Log log;              // for warnings
  Log information_log;  // see LoadOptions
  ModelGraph loaded;
  StoredParts stored;
  std::vector<StageRecord> stages;  // of loading
  // Called with the result of each bind before it is used. A bundle is made of these. Null: not
  // called; else PlanOptions::notes_plan is set.
  std::function<void(Planner&, const PlanResult&, const CacheRecord* record)> on_bound;
  // Of the model in whose files the caches of nested graphs are: this one, unless it is nested.
  const StoredParts* stored_with = &stored;
};

// What the binds of the nested graphs of a plan found out.
CacheRecords nested_records(const BuiltPlan& built);

}  // namespace tessera
