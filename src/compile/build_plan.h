// Builds a plan that can run from a graph whose sizes are known.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assemble/plan_assembler.h"
#include "assemble/stored_kernels.h"
#include "backend/packs.h"
#include "backend/plugin.h"
#include "base/errors/log.h"
#include "base/threads/parallel.h"
#include "choose/choice.h"
#include "choose/choose_tuning.h"
#include "choose/price_offers.h"
#include "choose/select_offers.h"
#include "compile/compile_tuning.h"
#include "engine/built_plan.h"
#include "graph/graph.h"
#include "graph/released_weight.h"
#include "measure/pricing_options.h"
#include "ops/registry.h"
#include "plan/plan_family.h"

namespace tessera {

// The data that decide a build. BuildServices has the objects that it uses.
struct PlanOptions {
  int precision = TESSERA_PRECISION_FLOAT32;
  int nan = TESSERA_NAN_EXACT;              // TESSERA_NAN_
  int accuracy = TESSERA_ACCURACY_BOUNDED;  // TESSERA_ACCURACY_
  bool fuses = true;                        // find groups for kernels that are compiled
  // Without prices: whether the order of backends counts more than how many nodes one pass
  // computes, and whether kernels that must be compiled first may be chosen.
  bool follows_order = false;
  bool compiles = false;
  bool notes_plan = false;  // return PlanResult::plan without prices, too
  OfferSelection selection;
  // Take only candidates whose kernels take sizes when they run, for a plan of a family of shapes.
  bool takes_sizes = false;
  VaryingDims varying_dims = {};      // with takes_sizes, of the graph
  bool returns_step_outputs = false;  // after the graph's outputs and kept values
  bool keeps_sparse_storage = false;  // error if a kernel reads a sparse value as dense
  int64_t memory_budget_bytes = 0;    // limit of MemoryUse; 0: none
  int64_t max_iterations = 0;         // of loops; 0: no limit
  // The executor's plans for other shapes, whose kernels may be reused.
  std::vector<const BuiltPlan*> siblings = {};
  // If set, exactly this plan is built. The plug-ins are asked for no other candidates, so the
  // result has neither prices nor refusals, and `pricing` is not used. The plug-ins of
  // backends_of() suffice.
  std::optional<tuning::KnownPlan> only_plan = {};
  ChooseTuning choose_tuning = {};
  CompileTuning compile_tuning = {};
  PricingOptions pricing;
};

// Called when a stage begins: "propose", "tune", "place", "build", "plan", "pack". Stages may
// repeat.
using StageWatcher = std::function<void(const std::string& stage)>;

// The objects that a build uses. They must outlive it; other builds may use them at the same time.
struct BuildServices {
  const ops::Registry& registry;
  PackStore& packs;
  ThreadPool& pool;
  std::vector<std::shared_ptr<const Plugin>> plugins = {};  // in order of preference
  FindStoredKernel find_stored_kernel = {};                 // null: no kernels are stored
  SharedKernels* shared_kernels = nullptr;  // of all models; null: each model has its own
  const Log* log = nullptr;  // gets a warning for each sparse value that becomes dense; may be null
  StageWatcher watcher = {};    // may be null
  PlanBodies plan_bodies = {};  // null: nodes with nested graphs are refused
  // Called before each kernel of a plan in the background is built; throws if the plan is no longer
  // needed. Null: it is always needed.
  std::function<void()> check_wanted = {};
};

struct PlanResult {
  BuiltPlan built;
  std::vector<ValueId> step_outputs;  // the results after those of the graph, if requested
  int64_t pack_bytes = 0;
  int kernels = 0;
  int reused_kernels = 0;  // number of these that another plan uses
  int loaded_kernels = 0;  // number of these that were loaded from a store
  // The next members up to `plan` are empty if no prices are known, `plan` unless
  // PlanOptions::notes_plan asks for it.
  std::vector<CandidateDescription> candidates;
  std::vector<ConversionDescription> conversions;
  std::vector<double> step_seconds;  // predicted, by step of the plan
  // PlanStep::unfused_seconds, by step of the plan.
  std::vector<std::optional<double>> step_unfused_seconds;
  std::optional<PlacementDescription> placement;
  TuningDescription tuning;
  tuning::KnownPlan plan;  // the choice, in the form that is stored
  // The plan that `plan.startup_plan` describes. It keeps its packs alive.
  std::optional<BuiltPlan> startup_plan;
  tuning::ReusedChoice reused;  // the choice and its costs, for binds to other shapes
  bool is_known_plan = false;   // the plan was found before
  // Without prices: what another plan, whose kernels must be compiled first, could save.
  std::optional<CompilationGain> compilation_gain;
};

// Throws OutOfMemory for a value that is larger than the machine's memory. Called before libraries
// prepare kernels, because they may allocate tables of that size.
void check_largest_fits(const Graph& graph);

// The time that build_plan() with the same arguments would take if it measures, and its likely
// gain. `options.pricing` must have costs. Throws as build_plan() does.
TuningQuote quote_plan(Graph graph, const PlanOptions& options, const BuildServices& services);

// PlanOptions::only_plan cannot be built; `reason` is a sentence without a full stop.
struct UnbuildablePlan {
  std::string reason;
};

// A plan, or a released weight that must be read again because the build needs its elements.
using BuildOutcome = std::variant<PlanResult, ReleasedWeight, UnbuildablePlan>;

// propose -> tune -> place -> plan -> build -> pack. If a kernel cannot be built, its candidate is
// refused with that reason and the choice is repeated.
//
// Chooses by price if `options.pricing` has costs, else in order. A reused choice is kept as far as
// its candidates are offered; only the rest is chosen by price. With `options.only_plan` nothing is
// chosen: the result is, bit for bit, what a build that chooses this plan returns. It is
// UnbuildablePlan if one of the candidates is not offered (any more) or cannot be built, if the
// plan does not fit the graph or the memory budget, and for graphs with sparse values.
//
// Throws InvalidArgument or Unsupported for pins and exclusions that cannot be satisfied,
// OutOfMemory if nothing fits into the budget, and the errors of the stages.
BuildOutcome build_plan(Graph graph, const PlanOptions& options, const BuildServices& services);

}  // namespace tessera
