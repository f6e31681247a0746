#include "compile/build_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "assemble/kernels_in_use.h"
#include "assemble/plan_assembler.h"
#include "base/containers/at.h"
#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "choose/choice.h"
#include "choose/choice_problem.h"
#include "choose/fit_budget.h"
#include "choose/placement_problem.h"
#include "compile/known_plan.h"
#include "compile/storage_fallback.h"
#include "compile/wanted_offers.h"
#include "measure/quote.h"
#include "measure/tune_placement.h"
#include "place/explain_violation.h"
#include "plan/memory_use.h"
#include "plan/plan_family.h"
#include "price/cost_sections.h"
#include "price/stored_plans.h"
#include "tessera/error.h"

namespace tessera {
namespace {

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.is_constant()) bytes += value.constant.bytes();
  }
  return bytes;
}

}  // namespace

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
  throw Error(ErrorKind::OutOfMemory, location_of(*writer),
              "expected an output of at most the " + std::to_string(most) +
                  " bytes of memory that this machine has, found one of " +
                  std::to_string(largest) + " bytes");
}

namespace {

// Leaves those that can be part of a plan for a family. Prices are for one of its sizes, at which
// the reference may seem cheap: it is left only for nodes that no library computes alone.
void keep_for_family(std::vector<Candidate>& candidates, const Graph& graph,
                     const VaryingDims& varying) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return !explain_fixed_sizes(candidate, graph, varying).empty();
  });
  std::vector<bool> has_library(graph.nodes.size());
  for (const Candidate& candidate : candidates) {
    const bool computes_alone = candidate.nodes.size() == 1 && !candidate.is_reference();
    if (computes_alone) has_library[at(candidate.nodes.front().index)] = true;
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.is_reference() && has_library[at(candidate.nodes.front().index)];
  });
}

// Logs a warning for each sparse value that a chosen kernel reads in a dense layout. With strict
// storage, throws Unsupported instead.
void report_dense_uses(const BuiltPlan& built, const Placement& placement,
                       const PlanOptions& options, const Log* log) {
  for (const StorageFallback& fallback :
       find_storage_fallbacks(built.graph, built.offers, placement, *built.layouts)) {
    if (options.keeps_sparse_storage) {
      throw Error(ErrorKind::Unsupported, fallback.location,
                  "expected a kernel that takes " + fallback.value +
                      ", as strict storage was asked for, found none: " + fallback.reason);
    }
    if (log == nullptr) continue;
    log->warn(fallback.location + " reads " + fallback.value + " after a conversion to " +
              fallback.layout + ": " + fallback.reason);
  }
}

// Empty if a candidate of `plan` is no longer offered.
Placement placement_of(const tuning::TuningTask& task, const tuning::KnownPlan& plan) {
  std::optional<std::vector<int>> chosen = tuning::find_candidates(task, plan.steps);
  return {.chosen = chosen ? *std::move(chosen) : std::vector<int>{}};
}

// The placement of `pricing.known_plan`, or else of the plan that the costs name as the fastest for
// this graph. Empty if there is no such plan or it is no longer offered.
Placement known_placement(const tuning::TuningTask& task, const std::optional<tuning::PlanKey>& key,
                          const PricingOptions& pricing) {
  if (pricing.known_plan) {
    Placement given = placement_of(task, *pricing.known_plan);
    if (!given.chosen.empty()) return given;
  }
  if (!key) return {};
  const auto found = pricing.costs->plans.find(*key);
  return found == pricing.costs->plans.end() ? Placement{} : placement_of(task, found->second);
}

// `placement` in the form that is stored, with its time if that is known.
tuning::KnownPlan known_plan_of(const tuning::TuningTask& task, const Placement& placement,
                                const std::optional<tuning::PlanKey>& key,
                                const PricingOptions& pricing) {
  tuning::KnownPlan plan{.steps = tuning::planned_steps(task, placement.chosen)};
  if (pricing.known_plan && pricing.known_plan->steps == plan.steps) return *pricing.known_plan;
  if (!key) return plan;
  const auto found = pricing.costs->plans.find(*key);
  const bool is_timed = found != pricing.costs->plans.end() && found->second.steps == plan.steps;
  if (is_timed) plan.timing = found->second.timing;
  return plan;
}

// Adds a startup plan to `plan`: another plan of the same graph, which runs until `plan` is built.
void add_startup_plan(const tuning::TuningTask& task, const Placement& placement,
                      const BuiltPlan& built, tuning::KnownPlan& plan) {
  tuning::KnownPlan& added = plan.startup_plan.emplace_back();
  added.steps = tuning::planned_steps(task, placement.chosen);
  note_layout(built, added);
}

// By candidate: whether it shares a node with one of `kept`, and is not one of them itself.
std::vector<bool> competitors_of(const std::vector<int>& kept, const Offers& offers, size_t nodes) {
  std::vector<bool> is_taken(nodes, false);
  std::vector<bool> is_competitor(offers.candidates.size(), false);
  for (const int index : kept) {
    for (const NodeId node : offers.candidates[static_cast<size_t>(index)].nodes) {
      is_taken[static_cast<size_t>(node.index)] = true;
    }
  }
  for (size_t index = 0; index < is_competitor.size(); ++index) {
    const std::vector<NodeId>& covered = offers.candidates[index].nodes;
    is_competitor[index] = std::any_of(covered.begin(), covered.end(), [&](NodeId node) {
      return is_taken[static_cast<size_t>(node.index)];
    });
  }
  for (const int index : kept) is_competitor[static_cast<size_t>(index)] = false;
  return is_competitor;
}

// How a choice is made.
enum class Mode : uint8_t {
  InOrder,    // no prices are known
  Priced,     // by known prices, and guesses
  Measured,   // by prices that are measured during this build
  Reused,     // as chosen for other shapes, and the rest by price
  Preferred,  // a known plan, among all candidates
  Known,      // nothing is chosen: PlanOptions::only_plan
};

struct ChosenPlan {
  Choice choice = {};                                    // the kernels of its placement are built
  std::optional<ChoiceTask> task = {};                   // the newest; nullopt in mode Known
  Placement startup_plan = {};                           // runs until the other one is built
  std::optional<PlacementDescription> description = {};  // if prices are known

  const Placement& placement() const { return choice.placement; }
};

// Builds the plan of one graph: collects offers, looks up prices, chooses, lays out and packs.
class PlanBuilder {
 public:
  PlanBuilder(Graph graph, const PlanOptions& options, const BuildServices& services)
      : options_(options),
        pricing_(options.pricing),
        services_(services),
        base_(propose(std::move(graph))),
        task_{.graph = base_.graph,
              .offers = base_.offers,
              .layouts = *base_.layouts,
              .registry = services.registry,
              .threads = services.pool.threads(),
              .precision = options.precision,
              .nan = options.nan,
              .accuracy = options.accuracy,
              .tuning = options.pricing.price_tuning},
        in_use_(options.siblings),
        stored_(services.registry, services.pool.threads(),
                {options.precision, options.nan, options.accuracy}, services.find_stored_kernel,
                services.shared_kernels),
        assembler_(services.pool, services.packs, in_use_, stored_, services.plan_bodies) {
    if (options.only_plan) return;
    problem_ = make_choice_problem(base_.graph, base_.offers, *base_.layouts,
                                   {.follows_order = options.follows_order,
                                    .may_compile = options.compiles,
                                    .keeps_sparse_storage = options.keeps_sparse_storage,
                                    .max_solve_seconds = pricing_.solve_budget_seconds,
                                    .tuning = options.choose_tuning});
    fitter_.emplace(base_.graph, base_.offers, *base_.layouts, options.memory_budget_bytes);
  }

  TuningQuote quote() {
    look_up_prices();
    return quote_tuning(context(), pricing_);
  }

  BuildOutcome build() {
    const bool is_priced = pricing_.costs != nullptr && !options_.only_plan;
    if (is_priced) look_up_prices();
    std::optional<ChoiceTask> task;  // at the prices that are known now; nullopt in mode Known
    if (problem_) {
      auto prices = prices_ ? std::optional(prices_->choice_prices()) : std::nullopt;
      task.emplace(*problem_, std::move(prices), Constraints{});
      fitter_->start(*task, known_);
    }
    const Mode mode = this->mode(task);
    ChosenPlan chosen = choose(mode, std::move(task));
    if (released_weight_) return *std::move(released_weight_);
    if (unbuildable_) return *std::move(unbuildable_);
    result_.placement = std::move(chosen.description);
    if (prices_) describe(chosen, mode == Mode::Preferred);
    if (problem_) report_dense_uses(base_, chosen.placement(), options_, services_.log);
    std::optional<BuiltPlan> startup_plan = lay_out(chosen);
    if (unbuildable_) return *std::move(unbuildable_);
    pack(chosen, std::move(startup_plan));
    if (released_weight_) return *std::move(released_weight_);
    if (mode == Mode::Measured) services_.packs.drop_unused();
    return std::move(result_);
  }

 private:
  void begin(const std::string& stage) const {
    if (services_.watcher) services_.watcher(stage);
  }

  // Returns the graph with its plug-ins, layouts and offers.
  BuiltPlan propose(Graph graph) const {
    BuiltPlan base;
    base.graph = std::move(graph);
    base.max_iterations = options_.max_iterations;
    base.registry = &services_.registry;
    base.plugins = services_.plugins;
    base.layouts = std::make_shared<const LayoutTable>(base.plugins, sparse_forms(base.graph),
                                                       allow_devices(options_.selection.devices));
    if (options_.only_plan) {
      begin("propose");
      base.offers =
          collect_known_offers(base.graph, *base.layouts, options_, services_, *options_.only_plan);
      return base;
    }
    check_selected_names(options_.selection, services_.registry, base.plugins);
    base.layouts->check_io_devices(base.graph);
    check_largest_fits(base.graph);
    begin("propose");
    base.offers =
        select_offers(collect_wanted_offers(base.graph, *base.layouts, options_, services_),
                      base.graph, options_.selection);
    if (options_.takes_sizes) {
      keep_for_family(base.offers.candidates, base.graph, options_.varying_dims);
    }
    return base;
  }

  TuningContext context() {
    return {base_, task_, *prices_, plan_key_, *problem_, known_, *fitter_, assembler_};
  }

  void look_up_prices() {
    prices_.emplace(task_, *pricing_.costs, pricing_.runs_per_build, options_.choose_tuning);
    // With a memory budget or a price on building, the best plan may not be the fastest one, for
    // which the key stands.
    if (options_.memory_budget_bytes == 0 && pricing_.runs_per_build == 0) {
      plan_key_ = tuning::plan_key(task_, base_.plugins);
    }
    if (pricing_.shared != nullptr) {
      pricing_.shared->look_up(prices_->keys(), plan_key_, *pricing_.costs);
    }
    if (pricing_.reused != nullptr) {
      tuning::add_scaled_costs(*pricing_.reused, prices_->priced_task(), *pricing_.costs);
    }
    result_.tuning.reused = static_cast<int>(pricing_.costs->kernels.size());
    result_.tuning.reused_seconds = tuning::seconds_to_measure(*pricing_.costs);
    prices_->look_up_guesses();
    known_ = known_placement(task_, plan_key_, pricing_);
  }

  Mode mode(const std::optional<ChoiceTask>& task) const {
    if (options_.only_plan) return Mode::Known;
    if (!prices_) return Mode::InOrder;
    if (pricing_.relies_on_known_plan && is_usable(*task, known_)) {
      return Mode::Preferred;
    }
    if (pricing_.measures) return Mode::Measured;
    return pricing_.reused != nullptr ? Mode::Reused : Mode::Priced;
  }

  ChosenPlan choose(Mode mode, std::optional<ChoiceTask> task) {
    switch (mode) {
      case Mode::InOrder: {
        ChosenPlan chosen = choose_and_build(*std::move(task));
        if (!released_weight_)
          result_.compilation_gain = compilation_gain(*chosen.task, chosen.placement());
        return chosen;
      }
      case Mode::Measured:
        return choose_by_measuring();
      case Mode::Reused:
        return described(choose_reused(*std::move(task)));
      case Mode::Priced:
      case Mode::Preferred:
        return described(choose_and_build(*std::move(task)));
      case Mode::Known:
        return {.choice = {.placement = build_only_plan()}};
    }
    TESSERA_CHECK(false, "there are no other modes");
    return {};
  }

  ChosenPlan described(ChosenPlan chosen) const {
    chosen.description = tessera::describe(*chosen.task, chosen.choice);
    return chosen;
  }

  // Builds the kernels of `placement`.
  AssembledKernels build_kernels(const Placement& placement) {
    AssembledKernels kernels = assembler_.build(placement, base_, [this](size_t, size_t) {
      if (services_.check_wanted) services_.check_wanted();
    });
    released_weight_ = std::move(kernels.released_weight);
    return kernels;
  }

  Placement refuse_only_plan(std::string reason) {
    unbuildable_ = UnbuildablePlan{std::move(reason)};
    return {};
  }

  // Returns the placement of `only_plan`, whose kernels are then built, or sets `unbuildable_`.
  Placement build_only_plan() {
    const tuning::KnownPlan& plan = *options_.only_plan;
    // If a kernel reads a sparse value in a dense layout, the user is told why no kernel reads it
    // sparse. That needs the offers of all backends.
    if (!sparse_forms(base_.graph).empty()) return refuse_only_plan("the graph has sparse values");
    // No step of the plan uses the device, so its plug-in was not opened; or the user is told that
    // there is none. A build that chooses does both.
    if (base_.layouts->find_missing_io_device(base_.graph) != nullptr) {
      return refuse_only_plan("an input or output is on a device that the plan does not use");
    }
    const std::optional<std::vector<int>> chosen = tuning::find_candidates(task_, plan.steps);
    if (!chosen) return refuse_only_plan(tuning::explain_missing(task_, plan.steps));
    Placement placement{.chosen = *chosen};
    const std::string violation =
        explain_violation(make_problem(base_.graph, base_.offers, *base_.layouts), placement);
    if (!violation.empty()) return refuse_only_plan("it is no plan of this graph: " + violation);
    begin("build");
    result_.reused = tuning::make_reusable(task_, *chosen);
    if (!build_kernels(placement).failed.empty()) {
      return refuse_only_plan("one of its kernels cannot be built");
    }
    result_.plan = plan;
    result_.is_known_plan = true;
    return placement;
  }

  // Repeats the choice until its kernels can be built and it fits into the memory budget, or until
  // a released weight is needed.
  ChosenPlan choose_and_build(ChoiceTask task) {
    // Whether `placement` needs too much memory. If so, forbids some of its candidates in `task`.
    const auto is_restricted = [&](const Placement& placement) {
      std::optional<Constraints> restricted = fitter_->restrict_to_budget(placement, task, known_);
      if (!restricted) return false;
      task = task.with(*std::move(restricted));
      return true;
    };
    while (true) {
      begin("place");
      Choice choice = choose_covering(task, base_.offers, base_.graph, known_);
      if (is_restricted(choice.placement)) continue;
      begin("build");
      const AssembledKernels kernels = build_kernels(choice.placement);
      if (!released_weight_ && !kernels.failed.empty()) {
        Constraints constraints =
            with_failed(task.constraints(), kernels.failed, base_.offers.candidates.size());
        constraints.oversized.clear();
        task = task.with(std::move(constraints));
        fitter_->start(task, known_);
        continue;
      }
      // The memory that libraries keep is known now.
      if (!released_weight_ && is_restricted(choice.placement)) continue;
      return {.choice = std::move(choice), .task = std::move(task)};
    }
  }

  ChosenPlan choose_by_measuring() {
    // Measuring runs the reference, which reads all weights.
    released_weight_ = find_released_weight(base_.graph);
    if (released_weight_) return {};
    begin("tune");
    TunedPlacement tuned = tune_placement(context(), pricing_);
    tuned.tuning.reused = result_.tuning.reused;
    tuned.tuning.reused_seconds = result_.tuning.reused_seconds;
    result_.tuning = std::move(tuned.tuning);
    return {.choice = {.placement = std::move(tuned.placement),
                       .solution = std::move(tuned.solved.solution)},
            .task = std::move(tuned.solved.task),
            .startup_plan = std::move(tuned.startup_plan),
            .description = std::move(tuned.description)};
  }

  // Keeps the candidates that were chosen for other shapes, as far as they are offered for these,
  // and chooses the cheapest placement for the other nodes. If that is not usable, chooses
  // everything by price.
  ChosenPlan choose_reused(ChoiceTask task) {
    begin("place");
    const std::vector<int> kept = tuning::find_reused(*pricing_.reused, task_);
    if (kept.empty()) return choose_and_build(std::move(task));
    Choice choice{.placement = {.chosen = kept}};
    if (!is_usable(task, choice.placement)) {
      // The description gets the bound of this solution, although it holds only with these
      // constraints.
      choice.solution = solve(
          task.with({.excluded = competitors_of(kept, base_.offers, base_.graph.nodes.size())}));
      choice.placement = choice.solution->found.placement;
    }
    if (!is_usable(task, choice.placement) || !fitter_->fits(choice.placement, task)) {
      return choose_and_build(std::move(task));
    }
    const AssembledKernels kernels = build_kernels(choice.placement);
    const bool is_fine = kernels.failed.empty() && fitter_->fits(choice.placement, task);
    if (!is_fine && !released_weight_) return choose_and_build(std::move(task));
    return {.choice = std::move(choice), .task = std::move(task)};
  }

  // Fills in the descriptions of the offers and of the choice.
  void describe(const ChosenPlan& chosen, bool is_preferred) {
    const Placement& placement = chosen.placement();
    if (pricing_.margin_search_seconds > 0 && pricing_.tune.on_progress) {
      pricing_.tune.on_progress(
          {.phase = BindPhase::Margins, .seconds_allowed = pricing_.margin_search_seconds});
    }
    for (Refusal& refusal : prices_->refusals()) {
      base_.offers.refusals.push_back(std::move(refusal));
    }
    result_.candidates = prices_->describe(
        placement, margins(*chosen.task, chosen.choice.solution, pricing_.margin_search_seconds));
    result_.conversions = prices_->describe_conversions();
    result_.plan = known_plan_of(task_, placement, plan_key_, pricing_);
    if (pricing_.reused == nullptr) {
      result_.reused =
          tuning::make_reusable(prices_->priced_task(), *pricing_.costs, placement.chosen);
    }
    result_.is_known_plan = is_preferred && placement.chosen == known_.chosen;
  }

  // Lays out the plan. Returns the startup plan if there is one. Sets `unbuildable_` if `only_plan`
  // exceeds the memory budget.
  std::optional<BuiltPlan> lay_out(const ChosenPlan& chosen) {
    begin("plan");
    const Placement& placement = chosen.placement();
    if (options_.returns_step_outputs) {
      result_.step_outputs = values_between_steps(base_.offers, placement);
    }
    if (options_.only_plan) {
      lay_out_only_plan(placement);
      return std::nullopt;
    }
    if (!prices_) {
      // `task_` refers to `base_`.
      if (options_.notes_plan) {
        result_.plan.steps = tuning::planned_steps(task_, placement.chosen);
      }
      result_.built = assembler_.lay_out(std::move(base_), placement, result_.step_outputs, {});
      if (options_.notes_plan) note_layout(result_.built, result_.plan);
      return std::nullopt;
    }
    // `prices_` refers to all offers of `base_`. Each plan gets a copy of the part that it uses.
    const auto plan_of = [&](const Placement& one) {
      return assembler_.lay_out(PlanAssembler::part_of(base_, one), one, result_.step_outputs,
                                chosen.task->conversion_prices());
    };
    result_.built = plan_of(placement);
    result_.step_seconds = prices_->step_seconds(result_.built.plan);
    result_.step_unfused_seconds = prices_->step_unfused_seconds(result_.built.plan);
    note_layout(result_.built, result_.plan);
    if (chosen.startup_plan.chosen.empty()) return std::nullopt;
    return plan_of(chosen.startup_plan);
  }

  void lay_out_only_plan(const Placement& placement) {
    const std::vector<std::vector<double>> prices =
        conversion_prices(*options_.only_plan, base_.graph, *base_.layouts);
    result_.built = assembler_.lay_out(std::move(base_), placement, result_.step_outputs, prices);
    const int64_t budget = options_.memory_budget_bytes;
    if (budget == 0) return;
    const int64_t needed = memory_use(result_.built.plan, result_.built.offers).total_bytes();
    if (needed > budget) {
      unbuildable_ =
          UnbuildablePlan{"it needs " + std::to_string(needed) +
                          " bytes of memory, more than the budget of " + std::to_string(budget)};
    }
  }

  void pack(const ChosenPlan& chosen, std::optional<BuiltPlan> startup_plan) {
    begin("pack");
    // Packs of other plans that were tried may serve later binds, if there is room.
    const int64_t needed = memory_use(result_.built.plan, result_.built.offers).weight_bytes;
    if (needed >= kLargeAllocationBytes && needed > available_memory_bytes() / 2) {
      services_.packs.drop_unused();
    }
    released_weight_ = assembler_.pack(result_.built);
    if (released_weight_) return;
    const int64_t max_ratio = options_.compile_tuning.startup_max_pack_ratio;
    if (startup_plan &&
        pack_bytes(startup_plan->plan) <= max_ratio * constant_bytes(startup_plan->graph)) {
      released_weight_ = assembler_.pack(*startup_plan);
      if (released_weight_) return;
      add_startup_plan(task_, chosen.startup_plan, *startup_plan, result_.plan);
      result_.startup_plan = std::move(startup_plan);
    }
    result_.pack_bytes = pack_bytes(result_.built.plan);
    result_.kernels = count_kernels(result_.built);
    result_.reused_kernels = assembler_.count_reused(chosen.placement());
    result_.loaded_kernels = assembler_.count_loaded(chosen.placement());
  }

  const PlanOptions& options_;
  const PricingOptions& pricing_;
  const BuildServices& services_;
  BuiltPlan base_;  // graph, plug-ins, layouts, offers
  tuning::TuningTask task_;
  KernelsInUse in_use_;
  StoredKernels stored_;
  PlanAssembler assembler_;
  std::optional<ChoiceProblem> problem_;  // nullopt in mode Known, in which nothing is chosen
  std::optional<BudgetFitter> fitter_;    // the same
  std::optional<PricedOffers> prices_;
  Placement known_;                          // the fastest plan so far; may be empty
  std::optional<tuning::PlanKey> plan_key_;  // key of the fastest plan
  // Set if the build needs a weight that was released; ends the build.
  std::optional<ReleasedWeight> released_weight_;
  std::optional<UnbuildablePlan> unbuildable_;  // the same for a plan that cannot be built
  PlanResult result_;
};

}  // namespace

TuningQuote quote_plan(Graph graph, const PlanOptions& options, const BuildServices& services) {
  return PlanBuilder(std::move(graph), options, services).quote();
}

BuildOutcome build_plan(Graph graph, const PlanOptions& options, const BuildServices& services) {
  return PlanBuilder(std::move(graph), options, services).build();
}

}  // namespace tessera
