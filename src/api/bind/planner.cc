#include "api/bind/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "api/bind/bind_progress.h"
#include "api/bind/measuring_notice.h"
#include "api/options/backends_state.h"
#include "api/options/bind_options.h"
#include "api/options/cache_folders.h"
#include "api/options/cache_ingredients.h"
#include "api/options/option_table.h"
#include "api/options/shape_ranges.h"
#include "api/state/shape_plan.h"
#include "base/errors/check.h"
#include "base/threads/fork.h"
#include "compile/known_plan.h"
#include "measure/check_offers.h"
#include "microbench/worker_bench.h"
#include "plan/plan_family.h"

namespace tessera {
namespace {

// When a choice is made by price.
enum class Prices : uint8_t {
  Never,
  IfAsked,   // if the options ask for measuring or name a cost table
  IfReused,  // if the choice for other shapes was made by price
  Always,
};

// A purpose of a build and what the build gets. Builds of all purposes use the kernels that other
// models of the process have, and those that earlier processes stored, if a bind has opened them.
struct PurposeRow {
  BuildPurpose purpose;
  Prices prices = Prices::Never;
  // Whether the user is told which sparse values become dense. Other builds repeat what a bind has
  // told.
  bool warns = false;
  // Whether kernels that must be compiled first are chosen without prices, too.
  bool compiles = false;
  bool is_in_background = false;
};

constexpr std::array kPurposes = {
    PurposeRow{.purpose = BuildPurpose::Bind, .prices = Prices::IfAsked, .warns = true},
    PurposeRow{.purpose = BuildPurpose::OtherShapes, .prices = Prices::IfReused, .warns = true},
    PurposeRow{.purpose = BuildPurpose::Family, .prices = Prices::IfReused},
    PurposeRow{
        .purpose = BuildPurpose::Measure, .prices = Prices::Always, .is_in_background = true},
    PurposeRow{.purpose = BuildPurpose::Compile, .compiles = true, .is_in_background = true},
    PurposeRow{.purpose = BuildPurpose::Swap, .is_in_background = true},
    PurposeRow{.purpose = BuildPurpose::Quote, .prices = Prices::Always},
    PurposeRow{.purpose = BuildPurpose::Verify},
};

const PurposeRow& row_of(BuildPurpose purpose) {
  const auto* const row = std::ranges::find(kPurposes, purpose, &PurposeRow::purpose);
  TESSERA_CHECK(row != kPurposes.end(), "each purpose has a row");
  return *row;
}

// The options as this purpose needs them.
BindOptions options_for(BuildPurpose purpose, const BindOptions& given) {
  BindOptions options = with_shapes_at(with_lasting_stop(given), kMiddle);
  if (row_of(purpose).prices == Prices::Always) options.optimize = Optimize::Now;
  return options;
}

// Nested graphs are measured if the graph around them may be.
BindOptions with_nested_purpose(BuildPurpose purpose, BindOptions options) {
  const bool may_measure = row_of(purpose).prices != Prices::IfReused;
  if (!may_measure) options.optimize = Optimize::Off;
  return options;
}

// Whether plug-ins may store blobs for later processes. An executor with other shapes writes
// nothing.
bool may_store(BuildPurpose purpose, const BindOptions& options) {
  if (options.cache.frozen) return false;
  return row_of(purpose).is_in_background ||
         (purpose == BuildPurpose::Bind && is_optimizing(options));
}

PlanOptions plan_options(const BindOptions& options, const PurposeRow& row, const BackendSet& set) {
  check_options(options);
  PlanOptions plan;
  plan.precision = options.run.precision == Precision::BFloat16 ? TESSERA_PRECISION_BFLOAT16
                                                                : TESSERA_PRECISION_FLOAT32;
  plan.nan = options.run.nan == NanMode::Fast ? TESSERA_NAN_FAST : TESSERA_NAN_EXACT;
  plan.accuracy =
      options.run.accuracy == Accuracy::Fast ? TESSERA_ACCURACY_FAST : TESSERA_ACCURACY_BOUNDED;
  plan.fuses = options.run.fuse;
  // A user who names libraries, or brings one, wants their kernels from the first run on.
  const bool has_named = !wanted_backends(options).empty();
  plan.compiles = row.compiles || has_named;
  plan.follows_order = has_named || set.has_third_party();
  for (const Pin& pin : options.run.pins) {
    plan.selection.pins.push_back({pin.nodes, set.resolve_alias(pin.backend), pin.algorithm});
  }
  for (const Exclusion& exclusion : options.run.exclusions) {
    plan.selection.exclusions.push_back({set.resolve_alias(exclusion.backend), exclusion.op});
  }
  plan.selection.devices = options.run.devices;
  plan.returns_step_outputs = options.run.fetches_step_outputs;
  plan.keeps_sparse_storage = options.run.strict_storage;
  plan.memory_budget_bytes = options.limits.memory_budget_bytes;
  plan.max_iterations = options.limits.max_iterations;
  return plan;
}

// The data in these; the constructor adds costs and callbacks.
PricingOptions pricing_options(const BindOptions& options, const PurposeRow& row) {
  const bool may_measure = row.prices == Prices::IfAsked || row.prices == Prices::Always;
  const bool measures = may_measure && is_optimizing(options);
  PricingOptions pricing{.measures = measures,
                         .measures_all = measures && options.tune.tune_all,
                         .is_in_background = row.is_in_background,
                         .runs_per_build = runs_per_build(options.tune.optimize_for),
                         .wants_startup_plan = measures && is_swap_possible(options),
                         .solve_budget_seconds = options.limits.solve_budget_seconds};
  if (may_measure) pricing.margin_search_seconds = options.tune.margin_search_seconds;
  pricing.tune.budget_seconds = options.limits.tune_budget_seconds;
  pricing.tune.denormals = options.run.keeps_denormals ? Denormals::Keep : Denormals::Flush;
  pricing.tune.candidate_timeout_seconds = options.limits.candidate_timeout_seconds;
  pricing.tune.on_progress = options.on_progress;
  return pricing;
}

// What the reference computes in a plan, but libraries compute in all of the others.
struct ReferenceShare {
  double seconds = 0;   // by its own estimate, which is too low for much work
  std::string longest;  // the node that takes the longest
};

ReferenceShare reference_share(const BuiltPlan& built, std::span<const BuiltPlan* const> others) {
  const auto each_reference_step = [](const BuiltPlan& plan, const auto& visit) {
    for (const ExecutionStep& step : plan.plan.steps) {
      if (step.candidate < 0) continue;
      const Candidate& candidate = plan.offers.candidates[static_cast<size_t>(step.candidate)];
      if (candidate.is_reference()) visit(plan.graph[candidate.nodes.front()], candidate);
    }
  };
  std::set<std::string> known;
  for (const BuiltPlan* const other : others) {
    each_reference_step(*other,
                        [&](const Node& node, const Candidate&) { known.insert(node.name); });
  }
  ReferenceShare share;
  double longest = 0;
  each_reference_step(built, [&](const Node& node, const Candidate& candidate) {
    if (known.contains(node.name)) return;
    share.seconds += candidate.optimistic_seconds;
    if (candidate.optimistic_seconds <= longest) return;
    longest = candidate.optimistic_seconds;
    share.longest = location_of(node);
  });
  return share;
}

bool needs_prices(const BindOptions& options, const PurposeRow& row) {
  const bool is_asked = is_optimizing(options) || !options.tune.cost_table.empty();
  return row.prices == Prices::Always || (row.prices == Prices::IfAsked && is_asked);
}

}  // namespace

Model::State::Planner::Planner(State& model, const BindOptions& options, BuildPurpose purpose,
                               std::function<void()> check_wanted)
    : model_(model),
      options_(options_for(purpose, options)),
      clock_(check_wanted ? [check_wanted](const std::string&) { check_wanted(); }
             : purpose == BuildPurpose::Bind ? stage_reporter(options_)
                                             : StageClock::Watcher()),
      may_store_(may_store(purpose, options_) ? model.backends.state_->blobs->permit_storing()
                                              : nullptr),
      pool_(options_.threads),
      plan_(plan_options(options_, row_of(purpose), set())),
      services_{.registry = *model.loaded.registry(),
                .packs = model.stored.packs(),
                .pool = pool_,
                .find_stored_kernel = model.stored.kernel_finder(),
                .shared_kernels = &model.backends.state_->store.kernels(),
                .log = row_of(purpose).warns ? &model.log : nullptr,
                .watcher = [this](const std::string& stage) { clock_.begin(stage); },
                .plan_bodies =
                    [this, purpose](const Graph& graph, const Node& node) {
                      return model_.plan_nested_graphs(
                          with_nested_purpose(purpose, options_), graph, node, plan_.takes_sizes,
                          more_ == nullptr ? std::vector<LoadedCache>() : *more_);
                    },
                .check_wanted = std::move(check_wanted)} {
  clock_.begin("specialise");
  const PurposeRow& row = row_of(purpose);
  plan_.notes_plan = purpose == BuildPurpose::Bind && model.on_bound != nullptr;
  plan_.pricing = pricing_options(options_, row);
  plan_.pricing.find_gains = [this] { return known_gains(options_); };
  plan_.pricing.tune.log = &model.log;
  if (!options_.tune.in_process) {
    plan_.pricing.tune.start_bench = [this] {
      return tuning::start_worker(
          choose_plugins(set(), options_),
          {.threads = pool_.threads(),
           .candidate_timeout_seconds = options_.limits.candidate_timeout_seconds,
           .services = model_.backends.state_->services},
          model_.log);
    };
  }
  if (needs_prices(options_, row)) {
    costs_ = known_costs(options_.tune.cost_table);
    add_prices();
  }
}

void Model::State::Planner::add_prices() {
  plan_.pricing.costs = &costs_;
  // Measuring anew uses nothing that this process has measured.
  if (!options_.cache.retune) plan_.pricing.shared = &model_.backends.state_->store.prices();
}

BackendSet& Model::State::Planner::set() const { return model_.backends.state_->set; }

PlanRequest Model::State::Planner::request(const std::vector<LoadedCache>& more) const {
  return model_.stored.request(options_, more, pool_.threads());
}

void Model::State::Planner::use_stored_parts() {
  model_.stored.open_packs(pool_);
  services_.find_stored_kernel = model_.stored.kernel_finder();
}

void Model::State::Planner::choose_unmeasured() {
  plan_.pricing.measures = false;
  if (options_.tune.cost_table.empty()) plan_.pricing.costs = nullptr;
}

void Model::State::Planner::reuse(const tuning::ReusedChoice* choice,
                                  std::vector<const BuiltPlan*> siblings) {
  plan_.siblings = std::move(siblings);
  if (choice == nullptr) return;
  plan_.pricing.reused = choice;
  add_prices();
  if (!is_optimizing(options_)) return;
  model_.backends.state_->store.fill(request(), model_.log, costs_, plan_.pricing);
}

PlanResult Model::State::Planner::build(PlanSearch* search) {
  services_.plugins = choose_plugins(set(), options_);
  // Opens the plug-ins of third parties, which a build without measuring may not need.
  if (plan_.pricing.measures) {
    plan_.pricing.measures_short_here = set().third_party_plugins().empty();
  }
  if (search != nullptr) {
    clock_.begin("look up");
    search->fill(costs_, plan_.pricing);
    if (!search->has_plan() && !options_.cache.retune) read_users_prices();
    // A user who asks for retune needs no notice that this measures.
    if (!options_.cache.retune) {
      ProgressCallback& report = plan_.pricing.tune.on_progress;
      report =
          with_measuring_notice(std::move(report), cache_folders(options_), model_.information_log);
    }
  }
  clock_.begin("specialise");
  return std::get<PlanResult>(with_weights([&] {
    Graph graph = model_.loaded.bound(options_, pool_);
    plan_.pricing.tune.inputs = tuning_inputs(graph, options_);
    return build_plan(std::move(graph), plan_, services_);
  }));
}

std::variant<Model::State::Planner::FamilyPlan, UnbuildablePlan>
Model::State::Planner::build_family(FamilySizes sizes, const FamilyShapes& shapes) {
  if (!is_optimizing(options_)) return make_family(sizes, shapes);
  Store& store = model_.backends.state_->store;
  std::optional<PlanSearch> search;
  if (std::optional<StoredPlan> known = store.find(family_request(), model_.log)) {
    std::variant<FamilyPlan, UnbuildablePlan> built =
        make_known_family(sizes, shapes, known->plan());
    if (std::holds_alternative<FamilyPlan>(built)) return built;
    search.emplace(std::move(*known).search());
  } else if (!options_.cache.frozen) {
    // Nothing is kept if another thread or process looks for the same plan.
    std::optional<LookupResult> task = store.try_look_up(family_request(), model_.log);
    if (task && std::holds_alternative<PlanSearch>(*task)) {
      search.emplace(std::get<PlanSearch>(std::move(*task)));
    }
  }
  if (search && has_prices()) search->fill(costs_, plan_.pricing);
  std::variant<FamilyPlan, UnbuildablePlan> built = make_family(sizes, shapes);
  auto* const family = std::get_if<FamilyPlan>(&built);
  if (family != nullptr && search && !options_.cache.frozen) {
    std::move(*search).keep(family->result, costs_);
    keep_stored(family->result.built);
  }
  return built;
}

bool Model::State::Planner::knows_family() const {
  return is_optimizing(options_) &&
         model_.backends.state_->store.find(family_request(), model_.log).has_value();
}

PlanRequest Model::State::Planner::family_request() const {
  // Other sizes above 1 have the same plan if they are near: each class of sizes has four times as
  // many elements as the one before it.
  BindOptions any_size = options_;
  const DeclaredShapes declared = model_.loaded.declared_shapes({});
  const double doublings = log2_elements(model_.loaded.input_dims(options_));
  const int64_t any_of_class = -1 - std::lround(doublings / 2);
  for (auto& [input, dims] : any_size.shapes) {
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] > 1 && declared.is_open(input, axis)) {
        dims[axis] = any_of_class;
      }
    }
  }
  PlanRequest request = model_.stored.request(any_size, {}, pool_.threads());
  request.bundled = nullptr;  // bundles have plans for exact shapes only
  return request;
}

std::variant<Model::State::Planner::FamilyPlan, UnbuildablePlan>
Model::State::Planner::make_known_family(FamilySizes sizes, const FamilyShapes& shapes,
                                         const tuning::KnownPlan& plan) {
  const std::vector<std::string> names = backends_of(plan);
  services_.plugins = choose_some_plugins(set(), options_, names);
  if (services_.plugins.size() != names.size()) {
    return UnbuildablePlan{"it needs a library that cannot be used"};
  }
  plan_.only_plan = plan;
  std::variant<FamilyPlan, UnbuildablePlan> built = make_family(sizes, shapes);
  plan_.only_plan.reset();
  return built;
}

std::variant<Model::State::Planner::FamilyPlan, UnbuildablePlan> Model::State::Planner::make_family(
    FamilySizes sizes, const FamilyShapes& shapes) {
  if (!plan_.only_plan) services_.plugins = choose_plugins(set(), options_);
  plan_.takes_sizes = true;
  std::variant<std::string, ModelGraph::Family> family;
  BuildOutcome outcome = with_weights([&]() -> BuildOutcome {
    family = model_.loaded.family(options_, sizes, pool_);
    if (auto* const reason = std::get_if<std::string>(&family)) return UnbuildablePlan{*reason};
    plan_.varying_dims = varying_dims(std::get<ModelGraph::Family>(family).sizes, shapes);
    return build_plan(std::move(std::get<ModelGraph::Family>(family).open.graph), plan_, services_);
  });
  if (auto* const unbuildable = std::get_if<UnbuildablePlan>(&outcome)) {
    return std::move(*unbuildable);
  }
  PlanResult& result = std::get<PlanResult>(outcome);
  const ReferenceShare share = reference_share(result.built, plan_.siblings);
  if (share.seconds > plan_.compile_tuning.family_max_reference_seconds) {
    return UnbuildablePlan{"only the reference takes sizes for " + share.longest};
  }
  FamilyPlan made{.result = std::move(result),
                  .sizes = std::move(std::get<ModelGraph::Family>(family).sizes),
                  .is_slow = share.seconds > 0};
  BuiltPlan& plan = made.result.built;
  for (const ExecutionStep& step : plan.plan.steps) {
    if (step.candidate < 0) continue;
    std::string reason =
        explain_fixed_sizes(plan.offers.candidates[static_cast<size_t>(step.candidate)], plan.graph,
                            plan_.varying_dims);
    if (!reason.empty()) return UnbuildablePlan{std::move(reason)};
  }
  // The arena need not be as large as the sizes that the plan was made for.
  PlanFamily resized(plan.graph, plan.offers, *plan.layouts, plan.plan);
  if (!resized.explain_fixed().empty()) return UnbuildablePlan{resized.explain_fixed()};
  if (!made.sizes.set(shapes.dims) || !resized.resize(made.sizes.dims(), plan.plan)) {
    return UnbuildablePlan{"its kernels do not take these sizes"};
  }
  return made;
}

std::variant<PlanResult, UnbuildablePlan> Model::State::Planner::build_only(
    const tuning::KnownPlan& plan) {
  clock_.begin("open");
  const std::vector<std::string> names = backends_of(plan);
  services_.plugins = choose_some_plugins(set(), options_, names);
  if (services_.plugins.size() != names.size()) {
    return UnbuildablePlan{"it needs a library that cannot be used"};
  }
  clock_.begin("specialise");
  plan_.only_plan = plan;
  BuildOutcome outcome = with_weights([&] {
    Graph graph = model_.loaded.bound(options_, pool_);
    (void)tuning_inputs(graph, options_);  // reports invalid ones, although nothing is measured
    return build_plan(std::move(graph), plan_, services_);
  });
  plan_.only_plan.reset();
  if (auto* const unbuildable = std::get_if<UnbuildablePlan>(&outcome)) {
    return std::move(*unbuildable);
  }
  return std::get<PlanResult>(std::move(outcome));
}

BuildOutcome Model::State::Planner::with_weights(const std::function<BuildOutcome()>& build) {
  BuildOutcome outcome = build();
  // Repeats only if other threads bind this model and release its weights meanwhile.
  while (std::holds_alternative<ReleasedWeight>(outcome)) {
    clock_.begin("restore");
    model_.loaded.read();
    outcome = build();
  }
  return outcome;
}

TuningQuote Model::State::Planner::quote() {
  if (!options_.cache.retune) {
    model_.backends.state_->store.fill(request(), model_.log, costs_, plan_.pricing);
    read_users_prices();
  }
  services_.plugins = choose_plugins(set(), options_);
  return quote_plan(model_.loaded.bound(options_, pool_), plan_, services_);
}

ModelVerification Model::State::Planner::verify() {
  services_.plugins = choose_plugins(set(), options_);
  const Graph graph = model_.loaded.bound_with_weights(options_, pool_);
  plan_.pricing.tune.inputs = tuning_inputs(graph, options_);
  CheckedOffers checked =
      check_offers(graph, services_.registry, services_.plugins, pool_,
                   {.precision = plan_.precision, .nan = plan_.nan, .accuracy = plan_.accuracy},
                   plan_.selection, plan_.pricing.tune);
  return {std::move(checked.candidates), std::move(checked.tuning)};
}

std::string Model::State::Planner::explain_wrong_kernel(StoredPlan& found) {
  clock_.begin("judge");
  found.fill(costs_, plan_.pricing);
  read_users_prices();
  const Graph graph = model_.loaded.bound_with_weights(options_, pool_);
  plan_.pricing.tune.inputs = tuning_inputs(graph, options_);
  const auto explain = [&](const tuning::KnownPlan& plan) {
    const std::vector<std::string> names = backends_of(plan);
    services_.plugins = choose_some_plugins(set(), options_, names);
    if (services_.plugins.size() != names.size()) {
      return std::string("it needs a library that cannot be used");
    }
    return tessera::explain_wrong_kernel(graph, plan_, services_, plan, costs_);
  };
  std::string wrong = explain(found.plan());
  for (const tuning::KnownPlan& other : found.plan().startup_plan) {
    if (wrong.empty()) wrong = explain(other);
  }
  // The choice cannot use kernels that were verified but never timed.
  std::erase_if(costs_.kernels, [](const auto& entry) {
    const tuning::Cost& cost = entry.second;
    return cost.refusal.empty() && !cost.cold && !cost.warm;
  });
  return wrong;
}

std::vector<tuning::PricedLibrary> Model::State::Planner::libraries() const {
  const std::shared_ptr<BackendSet> shared(model_.backends.state_, &set());
  return find_libraries(shared, options_)({});
}

void Model::State::Planner::read_users_prices() const {
  model_.backends.state_->store.read_users_prices(user_cache_folder(), machine_ingredients(),
                                                  [this] { return libraries(); });
}

void Model::State::Planner::keep_users_prices(double seconds) const {
  Store::keep_users_prices(
      user_cache_folder(), machine_ingredients(), [this] { return libraries(); }, seconds, costs_);
}

void Model::State::Planner::keep_stored(const BuiltPlan& built) {
  model_.stored.keep(built, pool_.threads(), {plan_.precision, plan_.nan, plan_.accuracy});
}

}  // namespace tessera
