// Model and load(): thin owners around the stages of src/compile.
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_cache.h"
#include "api/bind_options.h"
#include "api/bind_progress.h"
#include "api/cache_folders.h"
#include "api/cache_ingredients.h"
#include "api/describe.h"
#include "api/exchanged_layouts.h"
#include "api/executor_state.h"
#include "api/measuring_notice.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "backend/packs.h"
#include "backend/plugin_ops.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "cache/origin.h"
#include "compile/build_plan.h"
#include "compile/compile.h"
#include "compile/known_plan.h"
#include "compile/let_go.h"
#include "export/onnx/export.h"
#include "infer/mark_sparse.h"
#include "ops/work.h"
#include "tune/cost_store.h"
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

// Of all that the model is read from, then and now.
void check_same_stamps(const std::vector<StampedFile>& expected,
                       const std::vector<StampedFile>& found) {
  for (size_t index = 0; index < expected.size(); ++index) {
    if (index < found.size() && found[index].stamp == expected[index].stamp) continue;
    fail_changed(expected[index].path, "another one");
  }
}

}  // namespace

Graph Model::State::bound_graph(const BindOptions& wanted, ThreadPool& pool) {
  const std::lock_guard lock(mutex);
  check_unchanged(loaded.source.mappings);
  BoundGraph bound = bind_graph(loaded, wanted.shapes, wanted.fetch, *registry, pool, log);
  if (bound.is_as_loaded) loaded.is_settled = true;
  mark_sparse(bound.graph, parse_layouts(bound.graph, wanted.layouts), *registry);
  return std::move(bound.graph);
}

void Model::State::restore() {
  ThreadPool pool(load_threads);
  const std::vector<StampedFile> expected = files();
  check_unchanged(expected);
  LoadedModel again =
      given_bytes
          ? load_model(import_onnx_bytes(given_bytes->bytes, given_bytes->folder, *registry, log,
                                         given_bytes->name, {compile_options.copies_weights}),
                       compile_options, *registry, pool, log)
          : load_model(file, compile_options, *registry, pool, log);
  // Of what was open: it may have been replaced in between.
  if (!expected.empty()) check_same_stamps(expected, again.source.files);
  const std::lock_guard lock(mutex);
  loaded = std::move(again);
  if (warm_start) warm_start->note_read_again();
}

std::vector<StampedFile> Model::State::files() const {
  const std::lock_guard lock(mutex);
  return loaded.source.files;
}

void Model::State::check_weights() const {
  const std::lock_guard lock(mutex);
  check_unchanged(loaded.source.mappings);
}

const ModelStructure& Model::State::loaded_structure() {
  if (!structure) {
    tuning::StructureText written =
        tuning::structure_text(loaded.graph, tuning::ValueTypes::LeftOut);
    structure = {cache::digest_text(written.text), std::move(written.names)};
  }
  return *structure;
}

void Model::State::open_packs(ThreadPool& pool) {
  if (!warm_start) return;
  const std::lock_guard lock(mutex);
  warm_start->open_packs(loaded.graph, pool, log);
  packs.set_source(
      [this](const PackKey& key, int64_t bytes) { return warm_start->find_pack(key, bytes); });
}

void Model::State::keep_warm_start(const BuiltPlan& built, int threads,
                                   const PlanOptions& options) {
  if (!warm_start) return;
  const std::vector<SavableKernel> savable =
      StoredKernels(*registry, threads, options.precision, options.nan, {}).savable(built);
  const std::lock_guard lock(mutex);
  warm_start->keep(loaded, loaded_structure(), packs, savable, backends.state_->set);
}

FindStoredKernel Model::State::stored_kernel_finder() {
  if (!warm_start) return {};
  return [this](const std::string& key) { return warm_start->find_kernel(key); };
}

void Model::State::tell_once_if_slow(const BindOptions& options) {
  Backends::State& known = *backends.state_;
  if (!options.backends.empty() || !backends_of_environment().empty()) return;
  if (known.set.choose_names({}).size() > 1) return;
  std::call_once(known.is_told_to_be_slow, [&] {
    std::string reasons;
    for (const BackendState& state : known.set.states()) {
      if (state.plugin != nullptr) continue;
      reasons += reasons.empty() ? "" : ", ";
      reasons += state.name + ": " + name(state.unusable.status);
    }
    log.warn("no acceleration library can be used (" + reasons +
             "), so models run on the reference kernels, which are many times slower; 'tessera "
             "backends' says why, and what to do");
  });
}

std::vector<cache::Ingredient> Model::State::model_ingredients() {
  const std::lock_guard lock(mutex);
  return tessera::model_ingredients(loaded_structure());
}

// So much has left pages behind that are worth giving back.
constexpr int64_t kMuchPackedBytes = int64_t{1} << 20;

void Model::State::note_packed(int64_t bytes) {
  const std::lock_guard lock(mutex);
  packed_bytes += bytes;
  if (packed_bytes < kMuchPackedBytes) return;
  packed_bytes = 0;
  drop_resident_pages(loaded.source.mappings);
}

namespace {

// Of measuring; writing down what took less is not worth its time.
constexpr double kSecondsWorthStoring = 0.5;

// Above this, freed weights are given back to the system at once.
constexpr int64_t kMuchMemoryBytes = int64_t{1} << 23;

int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.constant.has_elements()) bytes = ops::saturating_add(bytes, value.constant.bytes());
  }
  return bytes;
}

// The registry, with the ops of plug-ins that are not of this project.
std::shared_ptr<const ops::Registry> extended_registry(BackendSet& set) {
  ops::Registry registry = ops::make_registry();
  bool is_extended = false;
  for (const std::shared_ptr<const Plugin>& plugin : set.strangers()) {
    for (ops::Op& op : make_ops(plugin->face(), plugin)) {
      // Of two that bring one op, the first counts.
      if (registry.find(op.domain, op.name) != nullptr) continue;
      registry.add(std::move(op));
      is_extended = true;
    }
  }
  return is_extended ? std::make_shared<const ops::Registry>(std::move(registry)) : nullptr;
}

}  // namespace

Model::Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Executor Model::bind(const BindOptions& options) const { return state_->bind(options, {}); }

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
    if (!options.retune) wanted.pricing.shared = &backends.state_->costs;
    wanted.pricing.wants_until_built = is_optimized && is_swap_possible(options);
  }
  std::optional<BindCache> cached;
  if (is_optimized) {
    clock.begin("look up");
    cached.emplace(cache_question(options, more, pool.threads()), backends.state_->plans, log);
    cached->look_up(waiting_teller(options));
  }
  if (is_optimized) {
    open_packs(pool);
    wanted.find_stored_kernel = stored_kernel_finder();
  }
  if (cached) judge_strangers_plan(options, wanted, *cached, costs, pool, clock);
  std::optional<PlanResult> known;
  std::optional<tuning::KnownPlan> faster;  // to change over to
  if (cached && cached->plan() != nullptr && !options.describes_candidates) {
    const tuning::KnownPlan& plan = *cached->plan();
    if (!plan.until_built.empty() && may_swap(options)) {
      known = build_known(options, wanted, plan.until_built.front(), pool, clock);
      if (known) faster = known->plan = plan;
    }
    if (!known) known = build_known(options, wanted, plan, pool, clock);
  }
  const bool is_cached = known.has_value();
  PlanResult result = is_cached
                          ? *std::move(known)
                          : build_anew(options, wanted, cached ? &*cached : nullptr, pool, clock);
  clock.note_bytes(result.pack_bytes);
  if (is_optimized) backends.state_->costs.add(costs);
  // What was measured and packed meanwhile is of this model only if its files are as they were.
  check_weights();
  std::shared_ptr<const CacheRecord> record;
  if (cached) {
    clock.begin("keep");
    record = cached->keep(result, costs);
    if (!options.frozen) add_to_cost_store(options, result.tuning.seconds, costs);
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
    keep_warm_start(result.built, pool.threads(), wanted);
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
  const bool has_rivals = is_cached && cached && !cached->change().empty();
  if (has_rivals && !options.frozen && may_swap(options)) {
    log.warn(cached->change() + "; what these offer now is measured behind the runs");
    state->swap_to([model = shared_from_this(), options = state->options, faster](TaskEnd& end) {
      std::optional<PlanResult> best = model->compete(options, end);
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

void Model::State::judge_strangers_plan(const BindOptions& options, PlanOptions& wanted,
                                        BindCache& cached, tuning::CostTable& costs,
                                        ThreadPool& pool, StageClock& clock) {
  if (cached.plan() == nullptr || cache::may_vouch_for_results(cached.plan_origin())) return;
  const tuning::KnownPlan plan = *cached.plan();
  clock.begin("judge");
  cached.tell(costs, wanted.pricing);
  read_cost_store(options);
  set_bench(options, wanted, pool);
  const std::vector<std::string> names = backends_of(plan);
  const auto plugins = choose_some_plugins(backends.state_->set, options, names);
  std::string wrong = "it needs a library that cannot be used";
  const auto judge = [&] {
    const Graph graph = bound_graph(options, pool);
    wanted.pricing.tune.inputs = tuning_inputs(graph, options);
    wrong = explain_wrong_kernel(graph, *registry, plugins, pool, wanted, plan, costs);
    return PlanResult();
  };
  if (plugins.size() == names.size()) build_with_weights(judge, clock);
  // Kernels that were judged and never timed are nothing to choose by.
  std::erase_if(costs.kernels, [](const auto& entry) {
    const tuning::Cost& cost = entry.second;
    return cost.refusal.empty() && !cost.cold && !cost.warm;
  });
  if (wrong.empty()) return;
  cached.drop_plan("a plan that somebody else found is not used: " + wrong);
  cached.look_up(waiting_teller(options));
}

std::optional<PlanResult> Model::State::compete(const BindOptions& given, TaskEnd& end) {
  BindOptions options = given;
  options.on_progress = [&end](const TuneProgress&) { return !end.is_cancelled(); };
  ThreadPool pool(options.threads);
  StageClock clock([](const auto&...) {});
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.find_stored_kernel = stored_kernel_finder();
  tuning::CostTable costs;
  wanted.pricing = pricing_options(options, costs);
  wanted.pricing.shared = &backends.state_->costs;
  BindCache cached(cache_question(options, {}, pool.threads()), backends.state_->plans, log);
  if (!cached.try_look_up()) return std::nullopt;
  // Another process may have held the competition meanwhile.
  const bool is_over = cached.plan() != nullptr && cached.change().empty();
  PlanResult result = is_over ? PlanResult() : build_anew(options, wanted, &cached, pool, clock);
  if (is_over) return build_known(options, wanted, *cached.plan(), pool, clock);
  backends.state_->costs.add(costs);
  check_weights();
  const std::shared_ptr<const CacheRecord> record = cached.keep(result, costs);
  add_to_cost_store(options, result.tuning.seconds, costs);
  if (end.is_cancelled()) return std::nullopt;
  if (record->is_saved()) keep_warm_start(result.built, pool.threads(), wanted);
  const std::lock_guard lock(mutex);
  newest_cache = record;
  let_go_packed_constants(loaded.graph, result.built);
  return result;
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
                                    BindCache* cached, ThreadPool& pool, StageClock& clock) {
  BackendSet& set = backends.state_->set;
  const auto plugins = choose_plugins(set, options);
  wanted.pricing.measures_short_here = set.strangers().empty();
  set_bench(options, wanted, pool);
  if (cached != nullptr) {
    clock.begin("look up");
    cached->tell(*wanted.pricing.costs, wanted.pricing);
    if (cached->plan() == nullptr && !options.retune) read_cost_store(options);
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

std::optional<PlanResult> Model::State::build_beside(const BindOptions& options,
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
    if (!options.frozen) keep_warm_start(result->built, pool.threads(), wanted);
    const std::lock_guard lock(mutex);
    let_go_packed_constants(loaded.graph, result->built);
  }
  return result;
}

ModelVerification Model::verify(const BindOptions& given) const {
  const BindOptions options = with_lasting_stop(given);
  if (options.on_progress) options.on_progress({.phase = BindPhase::Preparing});
  ThreadPool pool(options.threads);
  const PlanOptions wanted = plan_options(options, state_->backends.state_->set);
  tuning::CostTable none;
  PricingOptions pricing = pricing_options(options, none);
  const auto plugins = choose_plugins(state_->backends.state_->set, options);
  const auto check = [&] {
    const Graph graph = state_->bound_graph(options, pool);
    pricing.tune.inputs = tuning_inputs(graph, options);
    return check_offers(graph, *state_->registry, plugins, pool,
                        {.precision = wanted.precision, .nan = wanted.nan}, wanted.selection,
                        pricing.tune);
  };
  CheckedOffers checked;
  try {
    checked = check();
  } catch (const LetGo&) {
    state_->restore();
    checked = check();
  }
  return {std::move(checked.candidates), std::move(checked.tuning)};
}

std::string Model::to_onnx(
    const BindOptions& options,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  ThreadPool pool(options.threads);
  const auto write = [&] {
    Graph graph = state_->bound_graph(options, pool);
    check_has_elements(graph);
    for (Node& node : graph.nodes) {
      const auto found = notes.find(node.name);
      if (found == notes.end()) continue;
      for (const auto& [key, value] : found->second) node.metadata[key] = value;
    }
    return export_onnx(graph, *state_->registry);
  };
  try {
    return write();
  } catch (const LetGo&) {
    state_->restore();
    return write();
  }
}

ModelDescription Model::describe() const {
  const std::lock_guard lock(state_->mutex);
  ModelDescription description =
      describe_model(state_->loaded, state_->loaded.graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

ModelDescription Model::describe(const std::map<std::string, std::vector<int64_t>>& shapes) const {
  ThreadPool pool;
  const Graph graph = state_->bound_graph({.shapes = shapes}, pool);
  const std::lock_guard lock(state_->mutex);
  ModelDescription description = describe_model(state_->loaded, graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

std::vector<tuning::PricedLibrary> Model::State::libraries_of(const BindOptions& options) const {
  const std::shared_ptr<BackendSet> set(backends.state_, &backends.state_->set);
  return find_libraries(set, options)({});
}

void Model::State::read_cost_store(const BindOptions& options) {
  const std::filesystem::path folder = user_cache_folder();
  if (folder.empty()) return;
  std::call_once(backends.state_->is_store_read, [&] {
    backends.state_->costs.add(
        tuning::read_cost_store(folder, machine_ingredients(), libraries_of(options)));
  });
}

void Model::State::add_to_cost_store(const BindOptions& options, double seconds,
                                     const tuning::CostTable& costs) {
  const std::filesystem::path folder = user_cache_folder();
  if (folder.empty() || seconds < kSecondsWorthStoring) return;
  // Where it cannot be, nothing is lost but time.
  tuning::add_to_cost_store(folder, machine_ingredients(), libraries_of(options), costs);
}

CacheQuestion Model::State::cache_question(const BindOptions& wanted,
                                           const std::vector<GivenCache>& more, int threads) {
  const std::shared_ptr<BackendSet> set(backends.state_, &backends.state_->set);
  const std::vector<cache::Ingredient> of_model = model_ingredients();
  std::vector<std::string> asked = wanted_backends(wanted);
  for (std::string& name : asked) name = set->resolve_alias(name);
  const std::lock_guard lock(mutex);
  CacheQuestion question{
      .model = of_model,
      .model_name = file.filename().string(),
      .binding = bind_ingredients(loaded.graph, loaded_structure(), wanted, asked, threads),
      .find_versions = [set, wanted] { return priced_versions(*set, wanted); },
      .find_libraries = find_libraries(set, wanted),
      .given = more,
      .folders = cache_folders(wanted),
      .key_folder = user_cache_folder(),
      .is_frozen = wanted.frozen,
      .looks_up = !wanted.retune};
  question.given.insert(question.given.end(), given_caches.begin(), given_caches.end());
  return question;
}

const std::vector<StageRecord>& Model::stages() const { return state_->stages; }

Model Model::State::load(const std::shared_ptr<State>& state, const LoadOptions& options,
                         bool keeps_index) {
  StageClock clock;
  state->compile_options = {.is_strict = options.is_strict,
                            .keeps_all_values = options.keeps_all_values,
                            .copies_weights = options.copies_weights,
                            .takes_leases = keeps_index};
  state->load_threads = options.threads;
  state->registry = options.backends.state_->registry;
  // Originals and packs are not in memory together, but for one of them.
  state->packs.set_made_watcher([&model = *state](int64_t bytes) { model.note_packed(bytes); });
  if (keeps_index) {
    clock.begin("index");
    state->warm_start.emplace(user_cache_folder(), state->file, state->compile_options,
                              options.strict_stamps);
    ModelStructure structure;
    std::optional<LoadedModel> known =
        state->warm_start->load(structure, options.backends.state_->set, state->log);
    if (known) {
      state->loaded = *std::move(known);
      state->structure = std::move(structure);
      state->stages = clock.take();
      return Model(state);
    }
  }
  // Without an index it is all that is done here.
  clock.begin(keeps_index ? "read" : "load");
  try {
    state->restore();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    // Perhaps a plug-in brings the op: only now is it worth opening them.
    const auto extended = extended_registry(options.backends.state_->set);
    if (!extended) throw;
    state->registry = extended;
    state->restore();
    // The next process has to open the plug-in too.
    state->warm_start.reset();
  }
  if (state->warm_start) state->warm_start->note_loaded(state->log.messages());
  // Weights that passes have replaced are gone by now.
  if (weight_bytes(state->loaded.graph) > kMuchMemoryBytes) return_freed_memory();
  state->stages = clock.take();
  return Model(state);
}

Model load(const std::filesystem::path& file, const LoadOptions& options) {
  const auto state = std::make_shared<Model::State>(options);
  state->file = file;
  return Model::State::load(state, options,
                            options.keeps_index.value_or(is_optimize_wanted_by_environment()));
}

Model load(ModelBytes model, const LoadOptions& options) {
  const auto state = std::make_shared<Model::State>(options);
  state->file = model.name;
  state->given_bytes = std::move(model);
  return Model::State::load(state, options, /*keeps_index=*/false);
}

}  // namespace tessera
