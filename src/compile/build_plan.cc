#include "compile/build_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/memory.h"
#include "compile/chooser.h"
#include "compile/fit_budget.h"
#include "compile/kernels_in_use.h"
#include "compile/known_plan.h"
#include "compile/let_go.h"
#include "compile/plan_assembler.h"
#include "compile/storage_fallback.h"
#include "compile/tune_placement.h"
#include "compile/wanted_offers.h"
#include "tessera/error.h"
#include "tune/cost_sections.h"
#include "tune/stored_plans.h"

namespace tessera {
namespace {

// What a plan that only runs until another is built may pack, as a multiple of the weights.
constexpr int64_t kMostTimesPacked = 2;

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.is_constant()) bytes += value.constant.bytes();
  }
  return bytes;
}

// Throws OutOfMemory for a value that is larger than the machine's memory: before a library
// prepares for it, with tables as long as it, say.
void check_largest_fits(const Graph& graph) {
  int64_t largest = 0;
  const Node* writer = nullptr;
  for (const Node& node : graph.nodes) {
    for (const ValueId output : node.outputs) {
      if (output.is_none() || graph[output].sparse) continue;
      const int64_t bytes = type_bytes(graph[output].type).value_or(0);
      if (bytes <= largest) continue;
      largest = bytes;
      writer = &node;
    }
  }
  const int64_t most = machine_memory_bytes();
  if (largest <= most) return;
  throw Error(ErrorKind::OutOfMemory, place(*writer),
              "expected an output of at most the " + std::to_string(most) +
                  " bytes of memory that this machine has, found one of " +
                  std::to_string(largest) + " bytes");
}

// Tells the log of each sparse value that a chosen kernel takes dense; an error where that was to
// be.
void report_dense_uses(const BuiltPlan& built, const Placement& placement,
                       const PlanOptions& options) {
  for (const StorageFallback& fallback :
       find_storage_fallbacks(built.graph, built.offers, placement, *built.layouts)) {
    if (options.keeps_sparse_storage) {
      throw Error(ErrorKind::Unsupported, fallback.place,
                  "expected a kernel that takes " + fallback.value +
                      ", as strict storage was asked for, found none: " + fallback.reason);
    }
    if (options.log == nullptr) continue;
    options.log->warn(fallback.place + " reads " + fallback.value + " after a conversion to " +
                      fallback.layout + ": " + fallback.reason);
  }
}

// Nothing chosen where it is no longer offered.
Placement placement_of(const tuning::Subject& subject, const tuning::KnownPlan& plan) {
  std::optional<std::vector<int>> chosen = tuning::find_candidates(subject, plan.steps);
  return {.chosen = chosen ? *std::move(chosen) : std::vector<int>{}};
}

// The plan that is given, or that the costs name as the fastest for this graph; nothing chosen
// where there is none that is offered.
Placement known_placement(const tuning::Subject& subject, const std::optional<tuning::PlanKey>& key,
                          const PricingOptions& pricing) {
  if (pricing.known_plan) {
    Placement given = placement_of(subject, *pricing.known_plan);
    if (!given.chosen.empty()) return given;
  }
  if (!key) return {};
  const auto found = pricing.costs->plans.find(*key);
  return found == pricing.costs->plans.end() ? Placement{} : placement_of(subject, found->second);
}

// `placement` as it is found again, with the time that is known of it.
tuning::KnownPlan known_plan_of(const tuning::Subject& subject, const Placement& placement,
                                const std::optional<tuning::PlanKey>& key,
                                const PricingOptions& pricing) {
  tuning::KnownPlan plan{.steps = tuning::planned_steps(subject, placement.chosen)};
  if (pricing.known_plan && pricing.known_plan->steps == plan.steps) return *pricing.known_plan;
  if (!key) return plan;
  const auto found = pricing.costs->plans.find(*key);
  const bool is_timed = found != pricing.costs->plans.end() && found->second.steps == plan.steps;
  if (is_timed) plan.timing = found->second.timing;
  return plan;
}

// Has `plan` bring another one of the same graph, which runs until it is built.
void add_until_built(const tuning::Subject& subject, const Placement& placement,
                     const BuiltPlan& built, tuning::KnownPlan& plan) {
  tuning::KnownPlan& added = plan.until_built.emplace_back();
  added.steps = tuning::planned_steps(subject, placement.chosen);
  note_layout(built, added);
}

// Chooses and builds, until all that is chosen can be built and fits into memory.
Placement choose_and_build(Chooser& chooser, BudgetFitter& fitter, PlanAssembler& assembler,
                           BuiltPlan& base, const StageWatcher& watcher) {
  while (true) {
    watcher("place");
    const Placement placement = choose_covering(chooser, base.offers, base.graph);
    if (fitter.makes_way(placement, chooser)) continue;
    watcher("build");
    const std::vector<int> failed = assembler.build(placement, base);
    if (failed.empty()) return placement;
    for (const int index : failed) chooser.forbid(index);
    fitter.start(chooser);
  }
}

// By candidate, what competes with one of `kept` for a node.
std::vector<bool> rivals_of(const std::vector<int>& kept, const Offers& offers, size_t nodes) {
  std::vector<bool> is_taken(nodes, false);
  std::vector<bool> is_rival(offers.candidates.size(), false);
  for (const int index : kept) {
    for (const NodeId node : offers.candidates[static_cast<size_t>(index)].nodes) {
      is_taken[static_cast<size_t>(node.index)] = true;
    }
  }
  for (size_t index = 0; index < is_rival.size(); ++index) {
    const std::vector<NodeId>& covered = offers.candidates[index].nodes;
    is_rival[index] = std::any_of(covered.begin(), covered.end(), [&](NodeId node) {
      return is_taken[static_cast<size_t>(node.index)];
    });
  }
  for (const int index : kept) is_rival[static_cast<size_t>(index)] = false;
  return is_rival;
}

// What was chosen for other shapes where it is offered for these, and for the other nodes what is
// cheapest beside it; nothing chosen where that comes to nothing.
Placement build_carried(const std::vector<int>& kept, Chooser& chooser, BudgetFitter& fitter,
                        PlanAssembler& assembler, BuiltPlan& base) {
  if (kept.empty()) return {};
  Placement placement{.chosen = kept};
  if (!chooser.is_usable(placement)) {
    chooser.leave_out(rivals_of(kept, base.offers, base.graph.nodes.size()));
    placement = chooser.solve();
    chooser.leave_out({});
  }
  const bool is_good = chooser.is_usable(placement) && fitter.fits(placement, chooser) &&
                       assembler.build(placement, base).empty();
  return is_good ? placement : Placement{};
}

}  // namespace

PlanResult build_plan(Graph graph, const ops::Registry& registry,
                      std::vector<std::shared_ptr<const Plugin>> plugins, PackStore& packs,
                      ThreadPool& pool, const PlanOptions& options, const StageWatcher& watcher) {
  PlanResult result;
  const PricingOptions& pricing = options.pricing;
  BuiltPlan base;
  base.graph = std::move(graph);
  base.registry = &registry;
  base.plugins = std::move(plugins);
  base.layouts = std::make_shared<const LayoutTable>(base.plugins, sparse_forms(base.graph));

  check_selected_names(options.selection, registry, base.plugins);
  check_largest_fits(base.graph);
  watcher("propose");
  base.offers = select_offers(
      collect_wanted_offers(base.graph, registry, base.plugins, *base.layouts, pool, options),
      base.graph, options.selection);

  const tuning::Subject subject{.graph = base.graph,
                                .offers = base.offers,
                                .layouts = *base.layouts,
                                .registry = registry,
                                .threads = pool.threads(),
                                .precision = options.precision,
                                .nan = options.nan};
  Chooser chooser(base.graph, base.offers, *base.layouts, options.keeps_sparse_storage);
  chooser.limit_solving(pricing.solve_budget_seconds);
  const KernelsInUse in_use(options.siblings);
  const StoredKernels stored(registry, pool.threads(), options.precision, options.nan,
                             options.find_stored_kernel);
  PlanAssembler assembler(pool, packs, in_use, stored);
  std::optional<PricedOffers> prices;
  std::optional<tuning::PlanKey> plan_key;
  if (pricing.costs != nullptr) {
    prices.emplace(subject, *pricing.costs, pricing.runs_per_build);
    // What is best within a budget, or soon built, is not what is known as the fastest.
    if (options.memory_budget_bytes == 0 && pricing.runs_per_build == 0)
      plan_key = tuning::plan_key(subject, base.plugins);
    if (pricing.shared != nullptr)
      pricing.shared->look_up(prices->keys(), plan_key, *pricing.costs);
    if (pricing.carried != nullptr) {
      tuning::add_in_proportion(*pricing.carried, prices->priced_subject(), *pricing.costs);
    }
    result.tuning.reused = static_cast<int>(pricing.costs->kernels.size());
    result.tuning.reused_seconds = tuning::seconds_to_measure(*pricing.costs);
    prices->look_up_guesses();
    chooser.set_prices(*prices);
    chooser.prefer(known_placement(subject, plan_key, pricing));
  }
  BudgetFitter fitter(base.graph, base.offers, *base.layouts, options.memory_budget_bytes);
  fitter.start(chooser);
  Placement placement;
  Placement until_built;
  const bool is_known = pricing.relies_on_known_plan && chooser.is_usable(chooser.preferred());
  const bool measures = pricing.measures && !is_known;
  if (measures) {
    check_has_elements(base.graph);
    watcher("tune");
    TunedPlacement tuned =
        tune_placement({base, subject, *prices, plan_key, chooser, fitter, assembler}, pricing);
    placement = std::move(tuned.placement);
    until_built = std::move(tuned.until_built);
    result.placement = std::move(tuned.description);
    tuned.tuning.reused = result.tuning.reused;
    tuned.tuning.reused_seconds = result.tuning.reused_seconds;
    result.tuning = std::move(tuned.tuning);
  } else {
    if (pricing.carried != nullptr && !is_known) {
      watcher("place");
      placement = build_carried(tuning::find_chosen(*pricing.carried, subject), chooser, fitter,
                                assembler, base);
    }
    if (placement.chosen.empty()) {
      placement = choose_and_build(chooser, fitter, assembler, base, watcher);
    }
    if (prices) result.placement = chooser.describe(placement);
  }
  if (prices) {
    if (pricing.margin_search_seconds > 0 && pricing.tune.on_progress) {
      pricing.tune.on_progress(
          {.phase = BindPhase::Margins, .seconds_allowed = pricing.margin_search_seconds});
    }
    for (Refusal& refusal : prices->refusals()) base.offers.refusals.push_back(std::move(refusal));
    result.candidates = prices->describe(placement, chooser.margins(pricing.margin_search_seconds));
    result.conversions = prices->describe_conversions();
    result.plan = known_plan_of(subject, placement, plan_key, pricing);
    if (pricing.carried == nullptr) {
      result.carried = tuning::carry(prices->priced_subject(), *pricing.costs, placement.chosen);
    }
    result.is_known_plan = is_known && placement.chosen == chooser.preferred().chosen;
  }
  report_dense_uses(base, placement, options);

  watcher("plan");
  if (options.returns_step_outputs) {
    result.step_outputs = values_between_steps(base.offers, placement);
  }
  std::optional<BuiltPlan> other;
  if (prices) {
    // Prices describe what is offered, of which the plan keeps only what it uses.
    result.built = assembler.lay_out(PlanAssembler::part_of(base, placement), placement,
                                     result.step_outputs, chooser.conversion_prices());
    result.step_seconds = prices->step_seconds(result.built.plan);
    note_layout(result.built, result.plan);
    if (!until_built.chosen.empty()) {
      other = assembler.lay_out(PlanAssembler::part_of(base, until_built), until_built,
                                result.step_outputs, chooser.conversion_prices());
    }
  } else {
    result.built = assembler.lay_out(std::move(base), placement, result.step_outputs, {});
  }
  watcher("pack");
  assembler.pack(result.built);
  if (other && pack_bytes(other->plan) <= kMostTimesPacked * constant_bytes(other->graph)) {
    assembler.pack(*other);
    add_until_built(subject, until_built, *other, result.plan);
    result.until_built = std::move(other);
  }
  if (measures) packs.drop_unused();
  result.pack_bytes = pack_bytes(result.built.plan);
  result.kernels = count_kernels(result.built);
  result.reused_kernels = assembler.count_reused(placement);
  result.loaded_kernels = assembler.count_loaded(placement);
  return result;
}

}  // namespace tessera
