// Model and load(): thin wrappers around the parts of a model.
#include <memory>
#include <optional>
#include <utility>

#include "api/bind/planner.h"
#include "api/options/backends_state.h"
#include "api/options/bind_options.h"
#include "api/options/cache_folders.h"
#include "api/options/environment.h"
#include "api/options/option_table.h"
#include "api/options/shape_ranges.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "api/state/stage_clock.h"
#include "base/threads/parallel.h"
#include "export/onnx/export.h"

namespace tessera {

Model::Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

// Binds to the middle of the ranges, or to the largest sizes if the model refuses those: networks
// with several scales take only multiples of some size.
Executor Model::State::bind_ranges(const BindOptions& options) {
  try {
    return bind(options, {});
  } catch (const Error& error) {
    const bool may_be_size =
        error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::InvalidArgument;
    if (options.shape_ranges.empty() || !may_be_size) throw;
    const BindOptions largest = with_shapes_at(options, kLargest);
    if (!loaded.explain_refusal(largest).empty()) {
      std::string tried;
      for (const auto& [input, dims] : with_shapes_at(options, kMiddle).shapes) {
        tried += " '" + input + "' " + dims_text(dims);
      }
      throw Error(error.kind(), error.where(),
                  error.message() + "; in the middle of the ranges:" + tried +
                      "; the model refuses the largest sizes, too. If it takes some sizes only, "
                      "give ranges with steps");
    }
    return bind(largest, {});
  }
}

Executor Model::bind(const BindOptions& options) const {
  check_options(options);
  state_->loaded.check_ranges(options);
  state_->loaded.check_largest(options);
  if (!state_->loaded.needs_shapes(with_shapes_at(options, kMiddle))) {
    return state_->bind_ranges(options);
  }
  // The first run must not be the one to tell that a library is unknown or cannot be used.
  choose_plugins(state_->backends.state_->set, options);
  return Executor(std::make_unique<Executor::Deferred>(state_, options));
}

ModelVerification Model::verify(const BindOptions& options) const {
  if (options.on_progress) options.on_progress({.phase = BindPhase::Preparing});
  return State::Planner(*state_, options, BuildPurpose::Verify).verify();
}

std::string Model::to_onnx(
    const BindOptions& options,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  ThreadPool pool(options.threads);
  Graph graph = state_->loaded.bound_with_weights(options, pool);
  for (Node& node : graph.nodes) {
    const auto found = notes.find(node.name);
    if (found == notes.end()) continue;
    for (const auto& [key, value] : found->second) node.metadata[key] = value;
  }
  return export_onnx(graph, *state_->loaded.registry());
}

ModelDescription Model::describe() const { return state_->loaded.describe(); }

ModelDescription Model::describe(const std::map<std::string, std::vector<int64_t>>& shapes) const {
  ThreadPool pool;
  const Graph graph = state_->loaded.bound({.shapes = shapes}, pool);
  return state_->loaded.describe(&graph);
}

const std::vector<StageRecord>& Model::stages() const { return state_->stages; }

Model::State::State(ModelSource source, const LoadOptions& options, Keeping keeping)
    : backends(options.backends),
      log(options.log),
      information_log(options.information_log ? options.information_log
                                              : [](const std::string&) {}),
      loaded(std::move(source), options, keeping == Keeping::Index, backends.state_->registry, log),
      stored(loaded, std::shared_ptr<BackendSet>(backends.state_, &backends.state_->set),
             backends.state_->blobs, backends.state_->services, log) {}

Model Model::State::load(ModelSource source, const LoadOptions& options, Keeping keeping) {
  const auto state = std::make_shared<State>(std::move(source), options, keeping);
  const ModelSource& from = state->loaded.source();
  StageClock clock;
  const bool keeps_index = keeping == Keeping::Index;
  std::optional<IndexLocation> location;
  if (keeps_index && !from.bytes) {
    location = index_location(user_cache_folder(), from.file, version(), state->loaded.options(),
                              options.strict_stamps);
  }
  // Packs in a bundle are used even if nothing is kept in the user's folder.
  const bool uses_packs = keeps_index || from.bundle;
  if (!location && uses_packs && options.free_inputs.empty()) {
    location = {.folder = user_cache_folder()};
  }
  bool is_loaded = false;
  if (location) {
    clock.begin("index");
    is_loaded = state->stored.open(*location);
  }
  if (!is_loaded) {
    // Without an index this is the only stage.
    clock.begin(location ? "read" : "load");
    const bool needs_plugins = state->loaded.read_first(state->backends.state_->set);
    // If ops of plug-ins are needed, no index is kept: the next process has to open these, too.
    if (location && !needs_plugins) state->stored.keep_at(*std::move(location));
  }
  state->stages = clock.take();
  return Model(state);
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
  return Model::State::load({.file = file, .bytes = {}, .bundle = Bundle::open(file)}, options,
                            keeping_of(options));
}

Model load(ModelBytes model, const LoadOptions& options) {
  ModelSource source{
      .file = model.name, .bytes = {}, .bundle = Bundle::over(model.bytes, model.name)};
  source.bytes = std::move(model);
  return Model::State::load(std::move(source), options, Keeping::None);
}

}  // namespace tessera
