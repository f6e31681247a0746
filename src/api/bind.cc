// Model::bind(): looks up a known plan and verifies it if it is untrusted, or searches for a plan;
// builds it; and keeps the results. background_plans.cc has what follows behind the runs.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/bind_progress.h"
#include "api/cache_folders.h"
#include "api/executor_state.h"
#include "api/measuring_notice.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "assemble/release_weights.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "cache/origin.h"
#include "compile/build_plan.h"
#include "compile/known_plan.h"
#include "microbench/worker_bench.h"
#include "store/store.h"

namespace tessera {
namespace {

constexpr double kSecondsToOpenCompiler = 0.03;
constexpr double kMaxRuns = 1e15;

// Returns a callback that reports to on_progress what bind() waits for.
std::function<bool(const std::string& what)> waiting_reporter(const BindOptions& options) {
  return [&options](const std::string& what) {
    return !options.on_progress ||
           options.on_progress({.what = what, .phase = BindPhase::Waiting, .can_stop = true});
  };
}

}  // namespace

// One call of bind(): looks up, verifies, builds, keeps, and creates the executor, in this order.
class Model::State::Binder {
 public:
  Binder(Model::State& model, const BindOptions& given, const std::vector<LoadedCache>& more)
      : model_(model),
        store_(model.backends.state_->store),
        options_(with_lasting_stop(given)),
        more_(more),
        clock_(stage_reporter(options_)),
        is_optimized_(is_optimizing(options_)),
        waits_(optimize_of(options_) == Optimize::Now || options_.cache.frozen) {
    if (is_optimized_ && !options_.cache.frozen) {
      may_store_ = model.backends.state_->blobs->permit_storing();
    }
    clock_.begin("specialise");
    pool_.emplace(options_.threads);
    wanted_ = plan_options(options_, model.backends.state_->set);
    wanted_.log = &model.log;
    wanted_.shared_kernels = &store_.kernels();
    wanted_.notes_plan = model.on_bound != nullptr;
    if (!is_optimized_ && options_.tune.cost_table.empty()) return;
    costs_ = known_costs(options_.tune.cost_table);
    wanted_.pricing = pricing_options(options_, costs_);
    if (!options_.cache.retune) wanted_.pricing.shared = &store_.prices();
    wanted_.pricing.wants_startup_plan = is_optimized_ && is_swap_possible(options_);
  }

  Executor bind() {
    model_.warn_once_if_slow(options_);
    if (is_optimized_) {
      look_up();
    } else if (model_.bundle) {
      use_stored();
    }
    std::optional<PlanResult> known = build_stored();
    const bool is_cached = known.has_value();
    if (stored_ && !known) search_.emplace(std::move(*stored_).search());
    PlanResult result =
        known ? *std::move(known)
              : model_.build_anew(options_, wanted_, search_ ? &*search_ : nullptr, *pool_, clock_);
    clock_.note_bytes(result.pack_bytes);
    if (is_optimized_) store_.prices().add(costs_);
    // Measurements and packs are valid only if the files of the model have not changed meanwhile.
    model_.check_weights();
    std::shared_ptr<const CacheRecord> record = keep(result, is_cached);
    if (model_.on_bound) model_.on_bound(options_, wanted_, result, record.get());
    return executor(std::move(result), std::move(record), is_cached);
  }

 private:
  void take(LookupResult answer) {
    stored_.reset();
    if (auto* const one = std::get_if<StoredPlan>(&answer)) stored_.emplace(std::move(*one));
    if (auto* const task = std::get_if<PlanSearch>(&answer)) search_.emplace(std::move(*task));
  }

  // Uses stored packs and kernels.
  void use_stored() {
    model_.open_packs(*pool_);
    wanted_.find_stored_kernel = model_.stored_kernel_finder();
  }

  // Looks up a stored plan, and verifies it if it is untrusted; otherwise takes the task to search
  // for one.
  void look_up() {
    clock_.begin("look up");
    if (!waits_) return find_known();
    take(store_.look_up(model_.plan_request(options_, more_, pool_->threads()),
                        waiting_reporter(options_), model_.log));
    use_stored();
    if (!stored_ || cache::trusts_results(stored_->origin())) return;
    const std::string wrong =
        model_.verify_untrusted_plan(options_, wanted_, *stored_, costs_, *pool_, clock_);
    if (wrong.empty()) return;
    take(std::move(*stored_).refuse("a plan that somebody else found is not used: " + wrong,
                                    waiting_reporter(options_)));
  }

  // Takes a plan that is known already. Without one, this bind chooses as if it may not measure,
  // and measuring follows behind the runs.
  void find_known() {
    stored_ = store_.find(model_.plan_request(options_, more_, pool_->threads()), model_.log);
    use_stored();
    if (stored_) return;
    is_optimized_ = false;
    measures_behind_ = true;
    wanted_.pricing.measures = false;
    if (options_.tune.cost_table.empty()) wanted_.pricing = {};
  }

  // nullopt if there is no stored plan, if it can no longer be built, or if all candidates are to
  // be described.
  std::optional<PlanResult> build_stored() {
    if (!stored_ || options_.tune.describes_candidates) return std::nullopt;
    const tuning::KnownPlan& plan = stored_->plan();
    change_ = stored_->change();
    is_to_resume_ = stored_->is_to_resume();
    if (!plan.startup_plan.empty() && may_swap(options_)) {
      std::optional<PlanResult> first =
          model_.build_known(options_, wanted_, plan.startup_plan.front(), *pool_, clock_);
      if (first) {
        faster_ = first->plan = plan;
        return first;
      }
    }
    return model_.build_known(options_, wanted_, plan, *pool_, clock_);
  }

  // Returns null without optimize.
  std::shared_ptr<const CacheRecord> keep(PlanResult& result, bool is_cached) {
    std::shared_ptr<const CacheRecord> record;
    if (is_optimized_) {
      clock_.begin("keep");
      record =
          is_cached ? std::move(*stored_).keep(result) : std::move(*search_).keep(result, costs_);
      if (!options_.cache.frozen) model_.keep_users_prices(options_, result.tuning.seconds, costs_);
    }
    model_.note_bound(result, record);
    if (is_optimized_ && !options_.cache.frozen) model_.keep_blobs();
    // If a plan was saved, later processes will use it, and will also need its packs, kernels and
    // index. A search that the user stopped saves prices only, and he waits for the end.
    const bool is_stopped = result.tuning.is_stopped && !result.tuning.is_out_of_time;
    if (record && !options_.cache.frozen && !is_stopped &&
        (result.is_known_plan || record->is_saved())) {
      clock_.begin("keep");
      model_.keep_stored(result.built, pool_->threads(), wanted_);
    }
    return record;
  }

  Executor executor(PlanResult result, std::shared_ptr<const CacheRecord> record, bool is_cached) {
    const std::optional<CompilationGain> gain = result.compilation_gain;
    auto state =
        std::make_unique<Executor::State>(model_.shared_from_this(), options_, std::move(result));
    state->has_prices = wanted_.pricing.costs != nullptr;
    state->is_plan_cached = is_cached && record != nullptr;
    state->costs = std::move(costs_);
    state->cache = std::move(record);
    state->stages = clock_.take();
    state->bound_at = clock_.origin();
    if (measures_behind_) {
      measure_behind(*state, {});
    } else if (is_cached) {
      begin_swap(*state);
    } else if (gain && may_swap(options_)) {
      compile_behind(*state, *gain);
    }
    return Executor(std::move(state));
  }

  // Prepares a swap to kernels that are compiled after so many runs that the same number of runs
  // with them would pay for it.
  void compile_behind(Executor::State& state, const CompilationGain& gain) {
    const double runs = (kSecondsToOpenCompiler + gain.compile_seconds) / gain.seconds_per_run;
    state.swap_to(
        [model = model_.shared_from_this(), options = state.options](CancellationToken& end) {
          return model->compile_in_background(options, end);
        },
        1 + static_cast<int64_t>(std::min(runs, kMaxRuns)));
  }

  // Prepares a swap to the plan that measuring finds, or to `faster` if it finds none.
  void measure_behind(Executor::State& state, const std::optional<tuning::KnownPlan>& faster) {
    if (!may_swap(options_)) return;
    // The executor outlives its swap.
    state.swap_to([model = model_.shared_from_this(), options = state.options, faster,
                   &context = std::as_const(state.context)](CancellationToken& end) {
      std::optional<NextPlan> best =
          model->retune_in_background(options, end, [&context] { return context.is_running(); });
      return best || !faster ? std::move(best) : model->build_in_background(options, *faster, end);
    });
  }

  // Prepares a swap if another plan is faster or may be; it is measured and built in the background
  // of the runs.
  void begin_swap(Executor::State& state) {
    std::shared_ptr<Model::State> model = model_.shared_from_this();
    const bool may_measure = !options_.cache.frozen && may_swap(options_);
    if (may_measure && (!change_.empty() || is_to_resume_)) {
      if (!change_.empty()) {
        model_.information_log.warn(change_ + "; what these offer now is measured behind the runs");
      }
      measure_behind(state, faster_);
    } else if (faster_) {
      state.swap_to([model, options = state.options, plan = *faster_](CancellationToken& end) {
        return model->build_in_background(options, plan, end);
      });
    }
  }

  Model::State& model_;
  Store& store_;
  BindOptions options_;
  const std::vector<LoadedCache>& more_;
  StageClock clock_;
  bool is_optimized_;
  bool waits_;                             // for measuring, or for who measures
  bool measures_behind_ = false;           // nothing is known, and this bind does not wait
  std::shared_ptr<const void> may_store_;  // blobs of plug-ins
  std::optional<ThreadPool> pool_;
  tuning::CostTable costs_;
  PlanOptions wanted_;
  std::optional<StoredPlan> stored_;
  std::optional<PlanSearch> search_;
  std::optional<tuning::KnownPlan> faster_;  // the plan to swap to
  bool is_to_resume_ = false;                // the search for the stored plan was cut short
  std::string change_;  // which libraries changed since the stored plan was found
};

Executor Model::State::bind(const BindOptions& given, const std::vector<LoadedCache>& more) {
  return Binder(*this, given, more).bind();
}

void Model::State::note_bound(PlanResult& result,
                              const std::shared_ptr<const CacheRecord>& record) {
  const ForkSafeLock lock(mutex);
  if (record) newest_cache = record;
  const BuiltPlan* const startup_plan = result.startup_plan ? &*result.startup_plan : nullptr;
  const int64_t freed = release_packed_constants(loaded.graph, result.built, startup_plan);
  if (freed <= kMuchMemoryBytes) return;
  return_freed_memory();
  drop_resident_pages(loaded.source.mappings);
}

void Model::State::keep_blobs() {
  backends.state_->blobs->keep(backends.state_->services->take_new_blobs());
}

std::string Model::State::verify_untrusted_plan(const BindOptions& options, PlanOptions& wanted,
                                                StoredPlan& stored, tuning::CostTable& costs,
                                                ThreadPool& pool, StageClock& clock) {
  clock.begin("judge");
  stored.fill(costs, wanted.pricing);
  read_users_prices(options);
  set_bench(options, wanted, pool);
  const Graph graph = bound_graph_with_weights(options, pool);
  wanted.pricing.tune.inputs = tuning_inputs(graph, options);
  const auto verify = [&](const tuning::KnownPlan& plan) {
    const std::vector<std::string> names = backends_of(plan);
    const auto plugins = choose_some_plugins(backends.state_->set, options, names);
    if (plugins.size() != names.size())
      return std::string("it needs a library that cannot be used");
    return explain_wrong_kernel(graph, *registry, plugins, pool, wanted, plan, costs);
  };
  std::string wrong = verify(stored.plan());
  for (const tuning::KnownPlan& other : stored.plan().startup_plan) {
    if (wrong.empty()) wrong = verify(other);
  }
  // The choice cannot use kernels that were verified but never timed.
  std::erase_if(costs.kernels, [](const auto& entry) {
    const tuning::Cost& cost = entry.second;
    return cost.refusal.empty() && !cost.cold && !cost.warm;
  });
  return wrong;
}

PlanResult Model::State::build_with_weights(const std::function<BuildOutcome()>& build,
                                            StageClock& clock) {
  BuildOutcome outcome = build();
  // Repeats only if other threads bind this model and release its weights meanwhile.
  while (std::holds_alternative<ReleasedWeight>(outcome)) {
    clock.begin("restore");
    restore();
    outcome = build();
  }
  return std::get<PlanResult>(std::move(outcome));
}

void Model::State::set_bench(const BindOptions& options, PlanOptions& wanted, ThreadPool& pool) {
  wanted.pricing.tune.log = &log;
  if (options.tune.in_process) return;
  wanted.pricing.tune.start_bench = [this, &options, &pool] {
    return tuning::start_worker(
        choose_plugins(backends.state_->set, options),
        {.threads = pool.threads(),
         .candidate_timeout_seconds = options.limits.candidate_timeout_seconds,
         .services = backends.state_->services},
        log);
  };
}

PlanResult Model::State::build_anew(const BindOptions& options, PlanOptions& wanted,
                                    PlanSearch* search, ThreadPool& pool, StageClock& clock) {
  BackendSet& set = backends.state_->set;
  const auto plugins = choose_plugins(set, options);
  wanted.pricing.measures_short_here = set.third_party_plugins().empty();
  set_bench(options, wanted, pool);
  wanted.pricing.find_gains = [&options] { return known_gains(options); };
  if (search != nullptr) {
    clock.begin("look up");
    search->fill(*wanted.pricing.costs, wanted.pricing);
    if (!search->has_plan() && !options.cache.retune) read_users_prices(options);
    // A user who asks for retune needs no notice that this measures.
    if (!options.cache.retune) {
      ProgressCallback& report = wanted.pricing.tune.on_progress;
      report = with_measuring_notice(std::move(report), cache_folders(options), information_log);
    }
  }
  clock.begin("specialise");
  const auto build = [&] {
    Graph graph = bound_graph(options, pool);
    wanted.pricing.tune.inputs = tuning_inputs(graph, options);
    return build_plan(std::move(graph), *registry, plugins, packs, pool, wanted,
                      [&](const std::string& stage) { clock.begin(stage); });
  };
  return build_with_weights(build, clock);
}

TuningQuote Model::quote_tuning(const BindOptions& given) const {
  BindOptions options = with_lasting_stop(given);
  options.optimize = Optimize::Now;
  Store& store = state_->backends.state_->store;
  BackendSet& set = state_->backends.state_->set;
  ThreadPool pool(options.threads);
  tuning::CostTable costs = known_costs(options.tune.cost_table);
  PlanOptions wanted = plan_options(options, set);
  wanted.pricing = pricing_options(options, costs);
  wanted.pricing.find_gains = [&options] { return known_gains(options); };
  if (!options.cache.retune) {
    store.fill(state_->plan_request(options, {}, pool.threads()), state_->log, costs,
               wanted.pricing);
    state_->read_users_prices(options);
    wanted.pricing.shared = &store.prices();
  }
  TuningQuote quote = quote_plan(state_->bound_graph(options, pool), *state_->registry,
                                 choose_plugins(set, options), state_->packs, pool, wanted);
  BindOptions without_retune = options;
  without_retune.cache.retune = false;
  const std::optional<StoredPlan> stored =
      store.find(state_->plan_request(without_retune, {}, pool.threads()), state_->log);
  quote.is_known = stored && stored->change().empty() && !stored->is_to_resume();
  return quote;
}

std::optional<PlanResult> Model::State::build_known(const BindOptions& options,
                                                    const PlanOptions& wanted,
                                                    const tuning::KnownPlan& plan, ThreadPool& pool,
                                                    StageClock& clock) {
  clock.begin("open");
  const std::vector<std::string> names = backends_of(plan);
  auto plugins = choose_some_plugins(backends.state_->set, options, names);
  if (plugins.size() != names.size()) return std::nullopt;
  bool is_there = true;
  clock.begin("specialise");
  const auto build = [&]() -> BuildOutcome {
    const Graph graph = bound_graph(options, pool);
    (void)tuning_inputs(graph, options);  // what is wrong is said, also if nothing is measured
    std::optional<BuildOutcome> outcome =
        build_known_plan(graph, *registry, plugins, packs, pool, wanted, plan,
                         [&](const std::string& stage) { clock.begin(stage); });
    is_there = outcome.has_value();
    return outcome ? *std::move(outcome) : PlanResult();
  };
  PlanResult result = build_with_weights(build, clock);
  return is_there ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace tessera
