// Model and load(): thin owners around the stages of src/compile.
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_cache.h"
#include "api/bind_options.h"
#include "api/cache_folders.h"
#include "api/cache_ingredients.h"
#include "api/describe.h"
#include "api/describe_plan.h"
#include "api/exchanged_layouts.h"
#include "api/executor_state.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "backend/packs.h"
#include "backend/plugin_ops.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "compile/build_plan.h"
#include "compile/compile.h"
#include "compile/let_go.h"
#include "export/onnx/export.h"
#include "infer/mark_sparse.h"
#include "ops/work.h"
#include "tune/cost_store.h"
#include "tune/worker_bench.h"

namespace tessera {

Graph Model::State::bound_graph(const BindOptions& wanted, ThreadPool& pool) const {
  const std::lock_guard lock(mutex);
  Graph graph = bind_graph(loaded, wanted.shapes, wanted.fetch, *registry, pool, log);
  mark_sparse(graph, parse_layouts(graph, wanted.layouts), *registry);
  return graph;
}

void Model::State::restore() {
  ThreadPool pool(load_threads);
  LoadedModel again = load_model(file, compile_options, *registry, pool, log);
  const std::lock_guard lock(mutex);
  loaded = std::move(again);
}

const tuning::StructureText& Model::State::loaded_structure() {
  if (!structure) {
    structure = tuning::structure_text(loaded.graph, tuning::ValueTypes::LeftOut);
  }
  return *structure;
}

std::vector<cache::Ingredient> Model::State::ingredients(
    const BindOptions& wanted, const std::vector<std::shared_ptr<const Plugin>>& plugins,
    int threads) {
  const std::lock_guard lock(mutex);
  return bind_ingredients(loaded.graph, loaded_structure(), wanted, plugins, threads);
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

std::vector<ValueDescription> describe_results(const PlanResult& result) {
  const Graph& graph = result.built.graph;
  std::vector<ValueDescription> outputs = describe_values(graph, graph.outputs);
  for (const std::vector<ValueId>* ids : {&graph.kept, &result.step_outputs}) {
    for (ValueDescription& value : describe_values(graph, *ids)) {
      outputs.push_back(std::move(value));
    }
  }
  return outputs;
}

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

Executor Model::State::bind(const BindOptions& options, const std::vector<GivenCache>& more) {
  StageClock clock;
  clock.begin("specialise");
  ThreadPool pool(options.threads);
  BackendSet& set = backends.state_->set;
  PlanOptions wanted = plan_options(options, set);
  wanted.log = &log;
  tuning::CostTable costs;
  const bool is_optimized = is_optimizing(options);
  if (is_optimized || !options.cost_table.empty()) {
    costs = known_costs(options.cost_table);
    wanted.pricing = pricing_options(options, costs);
    if (!options.retune) wanted.pricing.shared = &backends.state_->costs;
  }
  const auto plugins = choose_plugins(set, options);
  wanted.pricing.measures_short_here = set.strangers().empty();
  if (!options.in_process) {
    wanted.pricing.tune.start_bench = [&] {
      return tuning::start_worker(plugins,
                                  {.threads = pool.threads(),
                                   .candidate_timeout_seconds = options.candidate_timeout_seconds},
                                  log);
    };
  }
  std::optional<BindCache> cached;
  if (is_optimized) {
    clock.begin("look up");
    cached.emplace(cache_question(options, more, plugins, pool.threads()), backends.state_->plans,
                   log);
    cached->look_up([&](const std::string& what) {
      return !options.on_progress || options.on_progress({.what = what});
    });
    cached->tell(costs, wanted.pricing);
    if (!cached->is_known() && !options.retune) read_cost_store(plugins);
    clock.begin("specialise");
  }
  const auto build = [&] {
    Graph graph = bound_graph(options, pool);
    wanted.pricing.tune.inputs = tuning_inputs(graph, options);
    return build_plan(std::move(graph), *registry, plugins, packs, pool, wanted,
                      [&](const std::string& stage) { clock.begin(stage); });
  };
  PlanResult result;
  try {
    result = build();
  } catch (const LetGo&) {
    clock.begin("restore");
    restore();
    result = build();
  }
  clock.note_bytes(result.pack_bytes);
  if (is_optimized) backends.state_->costs.add(costs);
  std::shared_ptr<const CacheRecord> record;
  if (cached) {
    clock.begin("keep");
    record = cached->keep(result, costs);
    if (!options.frozen) add_to_cost_store(plugins, result.tuning.seconds, costs);
  }
  {
    const std::lock_guard lock(mutex);
    if (record) newest_cache = record;
    const int64_t freed = let_go_packed_constants(loaded.graph, result.built);
    if (freed > kMuchMemoryBytes) {
      return_freed_memory();
      drop_resident_pages(loaded.source.mappings);
    }
  }
  std::vector<ValueDescription> inputs = describe_inputs(result.built.graph);
  std::vector<ValueDescription> outputs = describe_results(result);
  std::vector<std::optional<SparseForm>> input_forms =
      exchanged_forms(result.built.graph, result.built.graph.inputs);
  std::vector<std::optional<SparseForm>> output_forms =
      exchanged_forms(result.built.graph, result.built.graph.outputs);
  PlanDescription plan = describe_plan(result.built, result.pack_bytes, pool.threads(), *registry);
  for (size_t index = 0; index < result.step_seconds.size(); ++index) {
    plan.steps[index].predicted_seconds = result.step_seconds[index];
  }
  plan.candidates = std::move(result.candidates);
  plan.conversions = std::move(result.conversions);
  plan.placement = std::move(result.placement);
  plan.tuning = std::move(result.tuning);
  const RunnerOptions runner_options = {
      .threads = options.threads,
      .denormals = options.keeps_denormals ? Denormals::Keep : Denormals::Flush,
      .state_pairs = state_ports(options.state_pairs, inputs, outputs)};
  // Who watches this bind may be gone when the executor is planned anew.
  BindOptions kept_options = options;
  kept_options.on_progress = {};
  // A runner cannot move, so make_unique cannot hand one over.
  // NOLINTNEXTLINE(modernize-make-unique)
  return Executor(std::unique_ptr<Executor::State>(
      new Executor::State{.registry = registry,
                          .runner = PlanRunner(std::move(result.built), runner_options),
                          .inputs = std::move(inputs),
                          .outputs = std::move(outputs),
                          .input_forms = std::move(input_forms),
                          .output_forms = std::move(output_forms),
                          .plan = std::move(plan),
                          .costs = std::move(costs),
                          .stages = clock.take(),
                          .cache = std::move(record),
                          .model = shared_from_this(),
                          .options = std::move(kept_options)}));
}

ModelVerification Model::verify(const BindOptions& options) const {
  ThreadPool pool(options.threads);
  const PlanOptions wanted = plan_options(options, state_->backends.state_->set);
  tuning::CostTable none;
  PricingOptions pricing = pricing_options(options, none);
  const auto plugins = choose_plugins(state_->backends.state_->set, options);
  const auto check = [&] {
    const Graph graph = state_->bound_graph(options, pool);
    pricing.tune.inputs = tuning_inputs(graph, options);
    return check_offers(graph, *state_->registry, plugins, pool, wanted.precision, wanted.selection,
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

void Model::State::read_cost_store(const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  const std::filesystem::path folder = user_cache_folder();
  if (folder.empty()) return;
  std::call_once(backends.state_->is_store_read, [&] {
    backends.state_->costs.add(
        tuning::read_cost_store(folder, machine_ingredients(), tuning::priced_libraries(plugins)));
  });
}

void Model::State::add_to_cost_store(const std::vector<std::shared_ptr<const Plugin>>& plugins,
                                     double seconds, const tuning::CostTable& costs) {
  const std::filesystem::path folder = user_cache_folder();
  if (folder.empty() || seconds < kSecondsWorthStoring) return;
  // Where it cannot be, nothing is lost but time.
  tuning::add_to_cost_store(folder, machine_ingredients(), tuning::priced_libraries(plugins),
                            costs);
}

CacheQuestion Model::State::cache_question(
    const BindOptions& wanted, const std::vector<GivenCache>& more,
    const std::vector<std::shared_ptr<const Plugin>>& plugins, int threads) {
  CacheQuestion question{.ingredients = ingredients(wanted, plugins, threads),
                         .libraries = tuning::priced_libraries(plugins),
                         .given = more,
                         .folders = cache_folders(wanted),
                         .is_frozen = wanted.frozen,
                         .looks_up = !wanted.retune};
  const std::lock_guard lock(mutex);
  question.given.insert(question.given.end(), given_caches.begin(), given_caches.end());
  return question;
}

const std::vector<StageRecord>& Model::stages() const { return state_->stages; }

Model load(const std::filesystem::path& file, const LoadOptions& options) {
  StageClock clock;
  clock.begin("load");
  auto registry = std::make_shared<const ops::Registry>(ops::make_registry());
  auto state = std::make_shared<Model::State>(options.log);
  state->file = file;
  state->compile_options = {.is_strict = options.is_strict,
                            .keeps_all_values = options.keeps_all_values};
  state->load_threads = options.threads;
  state->backends = options.backends;
  state->registry = std::move(registry);
  // Originals and packs are not in memory together, but for one of them.
  state->packs.set_made_watcher([&model = *state](int64_t bytes) { model.note_packed(bytes); });
  try {
    state->restore();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    // Perhaps a plug-in brings the op: only now is it worth opening them.
    const auto extended = extended_registry(options.backends.state_->set);
    if (!extended) throw;
    state->registry = extended;
    state->restore();
  }
  // Weights that passes have replaced are gone by now.
  if (weight_bytes(state->loaded.graph) > kMuchMemoryBytes) return_freed_memory();
  state->stages = clock.take();
  return Model(std::move(state));
}

}  // namespace tessera
