// Model::bind(): what is known is looked up, judged where it is a stranger's, built, or found anew,
// and kept.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/bind_progress.h"
#include "api/cache_folders.h"
#include "api/executor_state.h"
#include "api/measuring_notice.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "cache/origin.h"
#include "compile/build_plan.h"
#include "compile/known_plan.h"
#include "compile/let_go.h"
#include "store/store.h"
#include "tune/worker_bench.h"

namespace tessera {
namespace {

// Has whoever is told of a bind know what it waits for.
std::function<bool(const std::string& what)> waiting_teller(const BindOptions& options) {
  return [&options](const std::string& what) {
    return !options.on_progress ||
           options.on_progress({.what = what, .phase = BindPhase::Waiting, .can_stop = true});
  };
}

}  // namespace

Executor Model::State::bind(const BindOptions& given, const std::vector<GivenCache>& more) {
  const BindOptions options = with_lasting_stop(given);
  StageClock clock(stage_teller(options));
  clock.begin("specialise");
  ThreadPool pool(options.threads);
  BackendSet& set = backends.state_->set;
  tell_once_if_slow(options);
  PlanOptions wanted = plan_options(options, set);
  wanted.log = &log;
  tuning::CostTable costs;
  const bool is_optimized = is_optimizing(options);
  if (is_optimized || !options.cost_table.empty()) {
    costs = known_costs(options.cost_table);
    wanted.pricing = pricing_options(options, costs);
    if (!options.retune) wanted.pricing.shared = &backends.state_->store.prices();
    wanted.pricing.wants_until_built = is_optimized && is_swap_possible(options);
  }
  std::optional<StoredPlan> stored;
  std::optional<PlanSearch> search;
  const auto take = [&](PlanAnswer answer) {
    stored.reset();
    if (auto* const one = std::get_if<StoredPlan>(&answer)) stored.emplace(std::move(*one));
    if (auto* const task = std::get_if<PlanSearch>(&answer)) search.emplace(std::move(*task));
  };
  if (is_optimized) {
    clock.begin("look up");
    take(backends.state_->store.look_up(plan_question(options, more, pool.threads()),
                                        waiting_teller(options), log));
    open_packs(pool);
    wanted.find_stored_kernel = stored_kernel_finder();
    if (stored && !cache::may_vouch_for_results(stored->origin())) {
      const std::string wrong = judge_strangers_plan(options, wanted, *stored, costs, pool, clock);
      if (!wrong.empty()) {
        take(std::move(*stored).refuse("a plan that somebody else found is not used: " + wrong,
                                       waiting_teller(options)));
      }
    }
  }
  std::optional<PlanResult> known;
  std::optional<tuning::KnownPlan> faster;  // to change over to
  std::string change;
  if (stored && !options.describes_candidates) {
    const tuning::KnownPlan& plan = stored->plan();
    change = stored->change();
    if (!plan.until_built.empty() && may_swap(options)) {
      known = build_known(options, wanted, plan.until_built.front(), pool, clock);
      if (known) faster = known->plan = plan;
    }
    if (!known) known = build_known(options, wanted, plan, pool, clock);
  }
  if (stored && !known) search.emplace(std::move(*stored).search());
  const bool is_cached = known.has_value();
  PlanResult result = is_cached
                          ? *std::move(known)
                          : build_anew(options, wanted, search ? &*search : nullptr, pool, clock);
  clock.note_bytes(result.pack_bytes);
  if (is_optimized) backends.state_->store.prices().add(costs);
  // What was measured and packed meanwhile is of this model only if its files are as they were.
  check_weights();
  std::shared_ptr<const CacheRecord> record;
  if (is_optimized) {
    clock.begin("keep");
    record = is_cached ? std::move(*stored).keep(result) : std::move(*search).keep(result, costs);
    if (!options.frozen) keep_users_prices(options, result.tuning.seconds, costs);
  }
  {
    const std::lock_guard lock(mutex);
    if (record) newest_cache = record;
    const BuiltPlan* const until_built = result.until_built ? &*result.until_built : nullptr;
    const int64_t freed = let_go_packed_constants(loaded.graph, result.built, until_built);
    if (freed > kMuchMemoryBytes) {
      return_freed_memory();
      drop_resident_pages(loaded.source.mappings);
    }
  }
  // Who has saved its plan expects a next process, which will want the rest too.
  if (record && !options.frozen && (result.is_known_plan || record->is_saved())) {
    clock.begin("keep");
    keep_stored(result.built, pool.threads(), wanted);
  }
  auto state = std::make_unique<Executor::State>(registry, options);
  state->model = shared_from_this();
  state->has_prices = wanted.pricing.costs != nullptr;
  state->is_plan_cached = is_cached && record != nullptr;
  state->carried = std::move(result.carried);
  state->add_first_plan(std::move(result));
  state->costs = std::move(costs);
  state->cache = std::move(record);
  state->stages = clock.take();
  state->bound_at = clock.origin();
  const bool has_rivals = is_cached && !change.empty();
  if (has_rivals && !options.frozen && may_swap(options)) {
    information_log.warn(change + "; what these offer now is measured behind the runs");
    state->swap_to([model = shared_from_this(), options = state->options, faster](TaskEnd& end) {
      std::optional<NextPlan> best = model->compete(options, end);
      return best || !faster ? std::move(best) : model->build_beside(options, *faster, end);
    });
  } else if (faster) {
    state->swap_to([model = shared_from_this(), options = state->options,
                    plan = *std::move(faster)](TaskEnd& end) {
      return model->build_beside(options, plan, end);
    });
  }
  return Executor(std::move(state));
}

std::string Model::State::judge_strangers_plan(const BindOptions& options, PlanOptions& wanted,
                                               StoredPlan& stored, tuning::CostTable& costs,
                                               ThreadPool& pool, StageClock& clock) {
  clock.begin("judge");
  stored.tell(costs, wanted.pricing);
  read_users_prices(options);
  set_bench(options, wanted, pool);
  const auto judge = [&](const tuning::KnownPlan& plan) {
    const std::vector<std::string> names = backends_of(plan);
    const auto plugins = choose_some_plugins(backends.state_->set, options, names);
    if (plugins.size() != names.size())
      return std::string("it needs a library that cannot be used");
    const Graph graph = bound_graph(options, pool);
    wanted.pricing.tune.inputs = tuning_inputs(graph, options);
    return explain_wrong_kernel(graph, *registry, plugins, pool, wanted, plan, costs);
  };
  std::string wrong;
  const auto judge_all = [&] {
    wrong = judge(stored.plan());
    for (const tuning::KnownPlan& other : stored.plan().until_built) {
      if (wrong.empty()) wrong = judge(other);
    }
    return PlanResult();
  };
  build_with_weights(judge_all, clock);
  // Kernels that were judged and never timed are nothing to choose by.
  std::erase_if(costs.kernels, [](const auto& entry) {
    const tuning::Cost& cost = entry.second;
    return cost.refusal.empty() && !cost.cold && !cost.warm;
  });
  return wrong;
}

std::optional<NextPlan> Model::State::compete(const BindOptions& given, TaskEnd& end) {
  BindOptions options = given;
  options.on_progress = [&end](const TuneProgress&) { return !end.is_cancelled(); };
  ThreadPool pool(options.threads);
  StageClock clock([](const auto&...) {});
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.find_stored_kernel = stored_kernel_finder();
  tuning::CostTable costs;
  wanted.pricing = pricing_options(options, costs);
  Store& store = backends.state_->store;
  wanted.pricing.shared = &store.prices();
  wanted.pricing.is_behind_runs = true;
  std::optional<PlanAnswer> answer =
      store.try_look_up(plan_question(options, {}, pool.threads()), log);
  if (!answer) return std::nullopt;
  std::optional<PlanResult> result;
  std::shared_ptr<const CacheRecord> record;
  // Another process may have held the competition meanwhile.
  if (auto* const stored = std::get_if<StoredPlan>(&*answer)) {
    result = build_known(options, wanted, stored->plan(), pool, clock);
    if (!result) return std::nullopt;
    check_weights();
    record = std::move(*stored).keep(*result);
  } else {
    auto& search = std::get<PlanSearch>(*answer);
    result = build_anew(options, wanted, &search, pool, clock);
    store.prices().add(costs);
    check_weights();
    record = std::move(search).keep(*result, costs);
    keep_users_prices(options, result->tuning.seconds, costs);
  }
  if (end.is_cancelled()) return std::nullopt;
  if (result->is_known_plan || record->is_saved()) {
    keep_stored(result->built, pool.threads(), wanted);
  }
  const std::lock_guard lock(mutex);
  newest_cache = record;
  let_go_packed_constants(loaded.graph, result->built);
  return NextPlan{*std::move(result), std::move(record)};
}

PlanResult Model::State::build_with_weights(const std::function<PlanResult()>& build,
                                            StageClock& clock) {
  try {
    return build();
  } catch (const LetGo&) {
    clock.begin("restore");
    restore();
    return build();
  }
}

void Model::State::set_bench(const BindOptions& options, PlanOptions& wanted, ThreadPool& pool) {
  if (options.in_process) return;
  wanted.pricing.tune.start_bench = [this, &options, &pool] {
    return tuning::start_worker(
        choose_plugins(backends.state_->set, options),
        {.threads = pool.threads(), .candidate_timeout_seconds = options.candidate_timeout_seconds},
        log);
  };
}

PlanResult Model::State::build_anew(const BindOptions& options, PlanOptions& wanted,
                                    PlanSearch* search, ThreadPool& pool, StageClock& clock) {
  BackendSet& set = backends.state_->set;
  const auto plugins = choose_plugins(set, options);
  wanted.pricing.measures_short_here = set.strangers().empty();
  set_bench(options, wanted, pool);
  if (search != nullptr) {
    clock.begin("look up");
    search->tell(*wanted.pricing.costs, wanted.pricing);
    if (!search->has_plan() && !options.retune) read_users_prices(options);
    // Who asks to measure anew knows.
    if (!options.retune) {
      TellProgress& tell = wanted.pricing.tune.on_progress;
      tell = with_measuring_notice(std::move(tell), cache_folders(options), information_log);
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
  const auto build = [&] {
    const Graph graph = bound_graph(options, pool);
    std::optional<PlanResult> result =
        build_known_plan(graph, *registry, plugins, packs, pool, wanted, plan,
                         [&](const std::string& stage) { clock.begin(stage); });
    is_there = result.has_value();
    return result ? *std::move(result) : PlanResult();
  };
  PlanResult result = build_with_weights(build, clock);
  return is_there ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<NextPlan> Model::State::build_beside(const BindOptions& options,
                                                   const tuning::KnownPlan& plan, TaskEnd& end) {
  const auto check_wanted = [&end](const auto&...) {
    if (!end.is_cancelled()) return;
    throw Error(ErrorKind::Cancelled, "the faster plan", "nobody waits for it any more");
  };
  ThreadPool pool(options.threads);
  StageClock clock(check_wanted);
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.check_wanted = check_wanted;
  wanted.find_stored_kernel = stored_kernel_finder();
  std::optional<PlanResult> result = build_known(options, wanted, plan, pool, clock);
  check_weights();
  if (result) {
    if (!options.frozen) keep_stored(result->built, pool.threads(), wanted);
    const std::lock_guard lock(mutex);
    let_go_packed_constants(loaded.graph, result->built);
  }
  if (!result) {
    throw Error(ErrorKind::Unsupported, "the faster plan",
                "one of its libraries no longer offers what it needs");
  }
  return NextPlan{.plan = *std::move(result)};
}

}  // namespace tessera
