// Model and load(): thin wrappers around the stages of src/compile.
#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/cache_folders.h"
#include "api/cache_ingredients.h"
#include "api/describe.h"
#include "api/io_layouts.h"
#include "api/model_state.h"
#include "api/planner.h"
#include "api/stage_clock.h"
#include "assemble/release_weights.h"
#include "backend/packs.h"
#include "backend/plugin_ops.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/module_folder.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "export/onnx/export.h"
#include "import/onnx/survey.h"
#include "infer/io_value.h"
#include "infer/mark_sparse.h"
#include "infer/specialise.h"
#include "ops/work.h"

namespace tessera {

namespace {

// Throws DeviceFailed unless all files of the model have the same stamps now as before.
void check_same_stamps(const std::vector<StampedFile>& expected,
                       const std::vector<StampedFile>& found) {
  for (size_t index = 0; index < expected.size(); ++index) {
    if (index < found.size() && found[index].stamp == expected[index].stamp) continue;
    fail_changed(expected[index].path, "another one");
  }
}

}  // namespace

void Model::State::with_lock(const std::function<void(const Log& log)>& work) {
  std::vector<std::string> messages;
  const Log deferred_log([&](const std::string& message) { messages.push_back(message); });
  const auto report = [&] {
    for (const std::string& message : messages) log.warn(message);
  };
  try {
    const ForkSafeLock lock(mutex);
    work(deferred_log);
  } catch (...) {
    report();
    throw;
  }
  report();
}

Graph Model::State::bound_graph(const BindOptions& wanted, ThreadPool& pool) {
  BoundGraph bound;
  with_lock([&](const Log& deferred_log) {
    check_unchanged(loaded.source.mappings);
    bound = bind_graph(loaded, wanted.shapes, wanted.fetch, *registry, pool, deferred_log);
    if (bound.is_unchanged) loaded.binds_unchanged = true;
  });
  const IoLayouts layouts = parse_layouts(bound.graph, wanted.run.layouts);
  mark_sparse(bound.graph, layouts.forms, *registry);
  mark_io_devices(bound.graph, layouts.devices);
  return std::move(bound.graph);
}

Graph Model::State::bound_graph_with_weights(const BindOptions& wanted, ThreadPool& pool) {
  Graph graph = bound_graph(wanted, pool);
  // Repeats only if other threads bind this model and release its weights meanwhile.
  while (find_released_weight(graph)) {
    restore();
    graph = bound_graph(wanted, pool);
  }
  return graph;
}

DeclaredShapes Model::State::declared_shapes() {
  const ForkSafeLock lock(mutex);
  return DeclaredShapes(loaded.graph);
}

LoadedModel Model::State::read(ThreadPool& pool) {
  const ImportOptions options{.copies_weights = compile_options.copies_weights,
                              .free_inputs = compile_options.free_inputs};
  if (bundle) {
    return load_model(bundle->import(*registry, log, options), compile_options, *registry, pool,
                      log);
  }
  if (!given_bytes) return load_model(file, compile_options, *registry, pool, log);
  return load_model(import_onnx_bytes(given_bytes->bytes, given_bytes->folder, *registry, log,
                                      given_bytes->name, options),
                    compile_options, *registry, pool, log);
}

void Model::State::restore() {
  ThreadPool pool(load_threads);
  const std::vector<StampedFile> expected = files();
  check_unchanged(expected);
  LoadedModel again = read(pool);
  // Compares the stamps of the files that were opened, because a file may have been replaced after
  // check_unchanged().
  if (!expected.empty()) check_same_stamps(expected, again.source.files);
  const ForkSafeLock lock(mutex);
  if (bundle && structure) {
    // The index of a bundle and its model are authenticated apart from one another.
    const tuning::StructureText found =
        tuning::structure_text(again.graph, tuning::ValueTypes::LeftOut);
    if (cache::digest_text(found.text) != structure->digest) {
      throw Error(ErrorKind::Corrupt, bundle->location(),
                  "expected the model that its index describes, found another one; make the bundle "
                  "again");
    }
  }
  loaded = std::move(again);
  if (stored_model) stored_model->note_read_again();
}

std::vector<StampedFile> Model::State::files() const {
  const ForkSafeLock lock(mutex);
  return loaded.source.files;
}

void Model::State::check_weights() const {
  const ForkSafeLock lock(mutex);
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
  if (!stored_model) return;
  with_lock([&](const Log& deferred_log) {
    const PersistentPacks& persistent_packs =
        stored_model->open_packs(loaded.graph, pool, deferred_log);
    packs.set_source([&persistent_packs](const PackKey& key, int64_t bytes) {
      return persistent_packs.find_pack(key, bytes);
    });
  });
}

void Model::State::keep_stored(const BuiltPlan& built, int threads,
                               const KernelLatitude& latitude) {
  if (!stored_model) return;
  const std::vector<SavableKernel> savable =
      StoredKernels(*registry, threads, latitude, {}).savable(built);
  const ForkSafeLock lock(mutex);
  stored_model->keep(loaded, loaded_structure(), packs, savable, backends.state_->set);
}

FindStoredKernel Model::State::stored_kernel_finder() const {
  const ForkSafeLock lock(mutex);
  if (!stored_model || stored_model->persistent_packs() == nullptr) return {};
  return [persistent_packs = stored_model->persistent_packs()](const std::string& key) {
    return persistent_packs->find_kernel(key);
  };
}

void Model::State::release_packed(BuiltPlan& built) {
  const ForkSafeLock lock(mutex);
  release_packed_constants(loaded.graph, built);
}

void Model::State::drop_packs_of_shapes() {
  std::set<Digest> own;
  {
    const std::lock_guard lock(mutex);
    for (const Value& value : loaded.graph.values) {
      if (value.digest) own.insert(*value.digest);
    }
  }
  packs.drop_unused([&](const Digest& weight) { return own.contains(weight); });
}

void Model::State::warn_once_if_slow(const BindOptions& options) {
  Backends::State& known = *backends.state_;
  if (!options.backends.empty() || !backends_of_environment().empty()) return;
  if (known.set.choose_names({}).size() > 1) return;
  std::call_once(known.has_warned_of_slowness, [&] {
    constexpr const char* kSlow =
        ", so models run on the reference kernels, which are many times slower; ";
    // The program `tessera` is installed elsewhere, if at all, and cannot tell why.
    const auto is_found = [](const BackendState& state) { return !state.file.empty(); };
    if (plugin_folder().empty() && std::ranges::none_of(known.set.states(), is_found)) {
      log.warn(
          "no acceleration library can be used: no folder lib/tessera with plug-ins lies "
          "beside '" +
          module_file().string() + "'" + kSlow +
          "install the whole of Tessera, or name the folder in TESSERA_BACKEND_PATH");
      return;
    }
    std::string reasons;
    for (const BackendState& state : known.set.states()) {
      if (state.plugin != nullptr) continue;
      reasons += reasons.empty() ? "" : ", ";
      reasons += state.name + ": " + name(state.unusable.status);
    }
    log.warn("no acceleration library can be used (" + reasons + ")" + kSlow +
             "'tessera backends' says why, and what to do");
  });
}

std::vector<cache::Ingredient> Model::State::model_ingredients() {
  const ForkSafeLock lock(mutex);
  return tessera::model_ingredients(loaded_structure());
}

// After packing this many bytes, it is worth returning the pages of the originals.
constexpr int64_t kMuchPackedBytes = int64_t{1} << 20;

void Model::State::note_packed(int64_t bytes) {
  const ForkSafeLock lock(mutex);
  packed_bytes += bytes;
  if (packed_bytes < kMuchPackedBytes) return;
  packed_bytes = 0;
  drop_resident_pages(loaded.source.mappings);
}

namespace {

int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.constant.has_elements()) bytes = ops::saturating_add(bytes, value.constant.bytes());
  }
  return bytes;
}

// The registry with the ops of third-party plug-ins; null if they define none.
std::shared_ptr<const ops::Registry> extended_registry(BackendSet& set) {
  ops::Registry registry = ops::make_registry();
  bool is_extended = false;
  for (const std::shared_ptr<const Plugin>& plugin : set.third_party_plugins()) {
    for (ops::Op& op : make_ops(plugin->abi(), plugin)) {
      // If two plug-ins define the same op, the first one is used.
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

ModelVerification Model::verify(const BindOptions& options) const {
  if (options.on_progress) options.on_progress({.phase = BindPhase::Preparing});
  return State::Planner(*state_, options, BuildPurpose::Verify).verify();
}

std::string Model::to_onnx(
    const BindOptions& options,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  ThreadPool pool(options.threads);
  Graph graph = state_->bound_graph_with_weights(options, pool);
  for (Node& node : graph.nodes) {
    const auto found = notes.find(node.name);
    if (found == notes.end()) continue;
    for (const auto& [key, value] : found->second) node.metadata[key] = value;
  }
  return export_onnx(graph, *state_->registry);
}

ModelDescription Model::describe() const {
  const ForkSafeLock lock(state_->mutex);
  const Graph graph = with_equal_names(state_->loaded.graph, *state_->registry);
  ModelDescription description = describe_model(state_->loaded, graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

ModelDescription Model::describe(const std::map<std::string, std::vector<int64_t>>& shapes) const {
  ThreadPool pool;
  const Graph graph = state_->bound_graph({.shapes = shapes}, pool);
  const ForkSafeLock lock(state_->mutex);
  ModelDescription description = describe_model(state_->loaded, graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

PlanRequest Model::State::plan_request(const BindOptions& wanted,
                                       const std::vector<LoadedCache>& more, int threads) {
  const std::shared_ptr<BackendSet> set(backends.state_, &backends.state_->set);
  const std::vector<cache::Ingredient> of_model = model_ingredients();
  std::vector<std::string> asked = wanted_backends(wanted);
  for (std::string& name : asked) name = set->resolve_alias(name);
  const ForkSafeLock lock(mutex);
  PlanRequest request{
      .model = of_model,
      .model_name = file.filename().string(),
      .binding = bind_ingredients(loaded.graph, loaded_structure(), wanted, asked, threads),
      .find_versions = [set, wanted] { return priced_versions(*set, wanted); },
      // Cache records keep this function, and the backends own the records: with a shared_ptr to
      // the backends it would be a reference cycle.
      .find_libraries =
          [known = std::weak_ptr(set), wanted](const std::vector<std::string>& names) {
            const std::shared_ptr<BackendSet> alive = known.lock();
            return alive ? find_libraries(alive, wanted)(names)
                         : std::vector<tuning::PricedLibrary>();
          },
      .given = more,
      .bundled = bundled_cache,
      .folders = cache_folders(wanted),
      .key_folder = user_cache_folder(),
      .is_frozen = wanted.cache.frozen,
      .looks_up = !wanted.cache.retune,
      .budget_seconds = wanted.limits.tune_budget_seconds};
  request.given.insert(request.given.end(), loaded_caches.begin(), loaded_caches.end());
  return request;
}

const std::vector<StageRecord>& Model::stages() const { return state_->stages; }

void Model::State::take(FoundModel found) {
  loaded = std::move(found.model);
  structure = std::move(found.structure);
  stored_model = std::move(found.stored);
}

bool Model::State::take_index(const IndexLocation& location) {
  if (location.file.empty()) return false;
  std::optional<FoundModel> found = find_model(location, backends.state_->set, log);
  if (!found) return false;
  // The bundle was opened before its index was found.
  if (bundle && !std::ranges::equal(found->model.source.files, std::array{*bundle->file()})) {
    return false;
  }
  take(*std::move(found));
  return true;
}

Model Model::State::load(const std::shared_ptr<State>& state, const LoadOptions& options,
                         Keeping keeping) {
  StageClock clock;
  const bool keeps_index = keeping == Keeping::Index;
  state->compile_options = {.is_strict = options.is_strict,
                            .keeps_all_values = options.keeps_all_values,
                            .copies_weights = options.copies_weights,
                            .takes_leases = keeps_index,
                            .free_inputs = options.free_inputs};
  state->load_threads = options.threads;
  state->registry = options.backends.state_->registry;
  // Drops pages of original weights while packing, so that not all originals and packs are in
  // memory at the same time.
  state->packs.set_made_watcher([&model = *state](int64_t bytes) { model.note_packed(bytes); });
  std::optional<IndexLocation> location;
  if (keeps_index && !state->given_bytes) {
    location = index_location(user_cache_folder(), state->file, version(), state->compile_options,
                              options.strict_stamps);
  }
  // Packs in a bundle are used even if nothing is kept in the user's folder.
  const bool uses_packs = keeps_index || state->bundle;
  if (!location && uses_packs && options.free_inputs.empty()) {
    location = {.folder = user_cache_folder()};
  }
  bool is_loaded = false;
  if (location) {
    clock.begin("index");
    is_loaded = state->take_index(*location);
    if (state->bundle) is_loaded = state->open_bundle(*location, !is_loaded) || is_loaded;
  }
  if (!is_loaded) state->read_first(location, options, clock);
  if (state->stored_model && state->bundled_packs) {
    state->stored_model->set_bundled(state->bundled_packs, state->bundle->file());
  }
  state->stages = clock.take();
  return Model(state);
}

void Model::State::read_first(std::optional<IndexLocation> location, const LoadOptions& options,
                              StageClock& clock) {
  const auto survey = [&] {
    ModelInspection found = bundle        ? survey_onnx_bytes(bundle->model_bytes(), *registry)
                            : given_bytes ? survey_onnx_bytes(given_bytes->bytes, *registry)
                                          : survey_onnx(file, *registry);
    found.model.file = file.string();
    return found;
  };
  const std::string location_text = given_bytes ? given_bytes->name
                                    : bundle    ? bundle->location()
                                                : "file '" + file.string() + "'";
  // Without an index this is the only stage.
  clock.begin(location ? "read" : "load");
  // An invalid model, whose external data is lost perhaps, may need what this build lacks, too.
  const auto says_all = [](const Error& error) {
    return error.kind() == ErrorKind::Unsupported || error.kind() == ErrorKind::InvalidModel;
  };
  try {
    restore();
  } catch (const Error& error) {
    if (!says_all(error)) throw;
    // A plug-in may define the op. Plug-ins are opened only if a model needs this.
    const auto extended = extended_registry(options.backends.state_->set);
    if (extended) registry = extended;
    if (!extended || error.kind() != ErrorKind::Unsupported) {
      throw_missing(error, location_text, survey);
    }
    try {
      restore();
    } catch (const Error& still) {
      if (!says_all(still)) throw;
      throw_missing(still, location_text, survey);
    }
    // No index is kept: the next process has to open the plug-in, too.
    location.reset();
  }
  if (location) stored_model = std::make_unique<StoredModel>(*std::move(location), log.messages());
  // Passes have freed the weights that they replaced.
  if (weight_bytes(loaded.graph) > kMuchMemoryBytes) return_freed_memory();
}

namespace {

// An index holds the model with the values of its file.
Keeping keeping_of(const LoadOptions& options) {
  const bool keeps_index = options.free_inputs.empty() &&
                           options.keeps_index.value_or(is_optimize_wanted_by_environment());
  return keeps_index ? Keeping::Index : Keeping::None;
}

}  // namespace

Model load(const std::filesystem::path& file, const LoadOptions& options) {
  const auto state = std::make_shared<Model::State>(options);
  state->file = file;
  state->bundle = Bundle::open(file);
  return Model::State::load(state, options, keeping_of(options));
}

Model load(ModelBytes model, const LoadOptions& options) {
  const auto state = std::make_shared<Model::State>(options);
  state->file = model.name;
  state->bundle = Bundle::over(model.bytes, model.name);
  state->given_bytes = std::move(model);
  return Model::State::load(state, options, Keeping::None);
}

}  // namespace tessera
