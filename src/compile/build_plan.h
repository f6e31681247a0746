// From a graph whose sizes are known to a plan that can run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/packs.h"
#include "backend/plugin.h"
#include "base/log.h"
#include "base/parallel.h"
#include "choose/price_offers.h"
#include "choose/select_offers.h"
#include "engine/built_plan.h"
#include "graph/graph.h"
#include "graph/released_weight.h"
#include "measure/pricing_options.h"
#include "ops/registry.h"

namespace tessera {

struct PlanOptions {
  int precision = TESSERA_PRECISION_FLOAT32;
  int nan = TESSERA_NAN_EXACT;  // TESSERA_NAN_
  OfferSelection selection;
  bool returns_step_outputs = false;  // after the graph's outputs and kept values
  bool keeps_sparse_storage = false;  // a sparse value that a kernel takes dense only is an error
  int64_t memory_budget_bytes = 0;    // of MemoryUse; 0: no limit
  // The executor's plans for other shapes, whose kernels may serve again.
  std::vector<const BuiltPlan*> siblings = {};
  FindStoredKernel find_stored_kernel = {};  // null: none are stored
  // Asked before each kernel of a known plan; throws where nobody wants the plan any more. Null: it
  // is always wanted.
  std::function<void()> check_wanted = {};
  const Log* log = nullptr;  // told of sparse values that are made dense; null: nobody
  PricingOptions pricing;
};

// Told when a stage begins: "propose", "tune", "place", "build", "plan", "pack"; a stage may come
// again.
using StageWatcher = std::function<void(const std::string& stage)>;

struct PlanResult {
  BuiltPlan built;
  std::vector<ValueId> step_outputs;  // what results follow those of the graph, if asked for
  int64_t pack_bytes = 0;
  int kernels = 0;
  int reused_kernels = 0;  // of these, that were in use in a sibling
  int loaded_kernels = 0;  // of these, that were stored
  // Where prices are known.
  std::vector<CandidateDescription> candidates;
  std::vector<ConversionDescription> conversions;
  std::vector<double> step_seconds;  // predicted, by step of the plan
  std::optional<PlacementDescription> placement;
  TuningDescription tuning;
  tuning::KnownPlan plan;  // what was chosen, as it is found again
  // Of `plan.startup_plan`: keeps its packs as long as it is there.
  std::optional<BuiltPlan> startup_plan;
  tuning::ReusedChoice reused;  // the same and what is known, for other shapes
  bool is_known_plan = false;   // it was chosen because it had been found before
};

// A plan; or a released weight whose elements building it takes: to be read again.
using BuildOutcome = std::variant<PlanResult, ReleasedWeight>;

// propose -> tune -> place -> plan -> build -> pack. A candidate whose kernel cannot be built is
// refused with that reason and the rest decided anew. `plugins` in order of preference. Throws
// InvalidArgument or Unsupported for pins and exclusions that nobody can serve, OutOfMemory where
// nothing fits into the budget, and what stages throw. Chooses by price where `options.pricing` has
// costs, else in order; with a reused choice what was chosen there, as far as it is offered, and
// only the rest by price.
BuildOutcome build_plan(Graph graph, const ops::Registry& registry,
                        std::vector<std::shared_ptr<const Plugin>> plugins, PackStore& packs,
                        ThreadPool& pool, const PlanOptions& options, const StageWatcher& watcher);

}  // namespace tessera
