#include "api/state/model_graph.h"

#include <utility>

#include "api/describe/describe.h"
#include "api/options/cache_ingredients.h"
#include "api/options/io_layouts.h"
#include "api/options/shape_ranges.h"
#include "assemble/release_weights.h"
#include "backend/plugin_ops/plugin_ops.h"
#include "base/memory/memory.h"
#include "cache/digest.h"
#include "compile/build_plan.h"
#include "import/onnx/survey.h"
#include "infer/infer.h"
#include "infer/io_value.h"
#include "infer/mark_sparse.h"
#include "infer/specialise.h"
#include "ops/work.h"
#include "price/group_text.h"

namespace tessera {
namespace {

// If more bytes of weights are freed, they are returned to the system immediately.
constexpr int64_t kMuchMemoryBytes = int64_t{1} << 23;
// After packing this many bytes, it is worth returning the pages of the originals.
constexpr int64_t kMuchPackedBytes = int64_t{1} << 20;

// Throws DeviceFailed unless all files of the model have the same stamps now as before.
void check_same_stamps(const std::vector<StampedFile>& expected,
                       const std::vector<StampedFile>& found) {
  for (size_t index = 0; index < expected.size(); ++index) {
    if (index < found.size() && found[index].stamp == expected[index].stamp) continue;
    fail_changed(expected[index].path, "another one");
  }
}

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

// An invalid model, whose external data is lost perhaps, may need what this build lacks, too.
bool may_lack_parts(const Error& error) {
  return error.kind() == ErrorKind::Unsupported || error.kind() == ErrorKind::InvalidModel;
}

}  // namespace

ModelGraph::ModelGraph(ModelSource source, const LoadOptions& options, bool takes_leases,
                       std::shared_ptr<const ops::Registry> registry, const Log& log)
    : source_(std::move(source)),
      options_({.is_strict = options.is_strict,
                .keeps_all_values = options.keeps_all_values,
                .copies_weights = options.copies_weights,
                .takes_leases = takes_leases,
                .free_inputs = options.free_inputs}),
      load_threads_(options.threads),
      registry_(std::move(registry)),
      log_(log) {}

void ModelGraph::take(LoadedModel model, ModelStructure structure) {
  loaded_ = std::move(model);
  structure_ = std::move(structure);
}

void ModelGraph::take_nested(Graph graph, std::shared_ptr<const ops::Registry> registry,
                             ThreadPool& pool) {
  registry_ = std::move(registry);
  is_nested_ = true;
  Rewritten rewritten = rewrite(infer_types(graph, *registry_, log_), *registry_, pool);
  loaded_.graph = std::move(rewritten.graph);
  loaded_.passes = std::move(rewritten.reports);
}

bool ModelGraph::read_first(BackendSet& set) {
  const auto survey = [&] {
    ModelInspection found = source_.bundle
                                ? survey_onnx_bytes(source_.bundle->model_bytes(), *registry_)
                            : source_.bytes ? survey_onnx_bytes(source_.bytes->bytes, *registry_)
                                            : survey_onnx(source_.file, *registry_);
    found.model.file = source_.file.string();
    return found;
  };
  const std::string location = source_.bytes    ? source_.bytes->name
                               : source_.bundle ? source_.bundle->location()
                                                : "file '" + source_.file.string() + "'";
  bool is_extended = false;
  try {
    read();
  } catch (const Error& error) {
    if (!may_lack_parts(error)) throw;
    // A plug-in may define the op. Plug-ins are opened only if a model needs this.
    const auto extended = extended_registry(set);
    if (extended) registry_ = extended;
    if (!extended || error.kind() != ErrorKind::Unsupported) {
      throw_missing(error, location, survey);
    }
    try {
      read();
    } catch (const Error& still) {
      if (!may_lack_parts(still)) throw;
      throw_missing(still, location, survey);
    }
    is_extended = true;
  }
  // Passes have freed the weights that they replaced.
  if (weight_bytes(loaded_.graph) > kMuchMemoryBytes) return_freed_memory();
  return is_extended;
}

LoadedModel ModelGraph::read_source(ThreadPool& pool) const {
  const ImportOptions options{.copies_weights = options_.copies_weights,
                              .free_inputs = options_.free_inputs};
  if (source_.bundle) {
    return load_model(source_.bundle->import(*registry_, log_, options), options_, *registry_, pool,
                      log_);
  }
  if (!source_.bytes) return load_model(source_.file, options_, *registry_, pool, log_);
  return load_model(import_onnx_bytes(source_.bytes->bytes, source_.bytes->folder, *registry_, log_,
                                      source_.bytes->name, options),
                    options_, *registry_, pool, log_);
}

void ModelGraph::read() {
  ThreadPool pool(load_threads_);
  const std::vector<StampedFile> expected = files();
  check_unchanged(expected);
  LoadedModel again = read_source(pool);
  // Compares the stamps of the files that were opened, because a file may have been replaced after
  // check_unchanged().
  if (!expected.empty()) check_same_stamps(expected, again.source.files);
  const ForkSafeLock lock(mutex_);
  if (source_.bundle && structure_) {
    // The index of a bundle and its model are authenticated apart from one another.
    const tuning::StructureText found =
        tuning::structure_text(again.graph, tuning::ValueTypes::LeftOut);
    if (cache::digest_text(found.text) != structure_->digest) {
      throw Error(ErrorKind::Corrupt, source_.bundle->location(),
                  "expected the model that its index describes, found another one; make the bundle "
                  "again");
    }
  }
  loaded_ = std::move(again);
  ++times_read_;
}

void ModelGraph::with_loaded(const std::function<void(LoadedModel& loaded, const Log& log)>& work) {
  std::vector<std::string> messages;
  const Log deferred_log([&](const std::string& message) { messages.push_back(message); });
  const auto report = [&] {
    for (const std::string& message : messages) log_.warn(message);
  };
  try {
    const ForkSafeLock lock(mutex_);
    work(loaded_, deferred_log);
  } catch (...) {
    report();
    throw;
  }
  report();
}

void ModelGraph::check_ranges(const BindOptions& wanted) const {
  const ForkSafeLock lock(mutex_);
  tessera::check_ranges(loaded_.graph, wanted);
}

std::string ModelGraph::explain_refusal(const BindOptions& wanted) {
  try {
    ThreadPool pool(1);
    bound(wanted, pool);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void ModelGraph::check_largest(const BindOptions& wanted) {
  if (wanted.shape_ranges.empty()) return;
  Graph graph;
  try {
    const ForkSafeLock lock(mutex_);
    graph = infer_types(specialise(loaded_.graph, with_shapes_at(wanted, kLargest).shapes),
                        *registry_, Log([](const std::string&) {}));
  } catch (const Error& error) {
    // A size that the model refuses is an error of the run that has it.
    if (error.kind() == ErrorKind::OutOfMemory) throw;
    return;
  }
  check_largest_fits(graph);
}

std::vector<std::vector<int64_t>> ModelGraph::input_dims(const BindOptions& wanted) const {
  const ForkSafeLock lock(mutex_);
  const Graph graph = specialise(loaded_.graph, wanted.shapes);
  std::vector<std::vector<int64_t>> all;
  for (const ValueId id : graph.inputs) {
    const Type& type = graph[id].type;
    all.push_back(type.is_known_tensor() ? dims_from(*type.shape) : std::vector<int64_t>());
  }
  return all;
}

bool ModelGraph::needs_shapes(const BindOptions& wanted) const {
  const ForkSafeLock lock(mutex_);
  if (!tessera::needs_shapes(loaded_.graph, wanted.shapes)) return false;
  check_given_shapes(loaded_.graph, wanted.shapes);
  check_unchanged(loaded_.source.mappings);
  return true;
}

Graph ModelGraph::bound(const BindOptions& wanted, ThreadPool& pool) {
  BoundGraph bound;
  with_loaded([&](LoadedModel& loaded, const Log& deferred_log) {
    check_unchanged(loaded.source.mappings);
    bound = bind_graph(loaded, wanted.shapes, wanted.fetch, *registry_, pool, deferred_log,
                       wanted.run.state_pairs);
    if (bound.is_unchanged) loaded.binds_unchanged = true;
  });
  const IoLayouts layouts = parse_layouts(bound.graph, wanted.run.layouts);
  mark_sparse(bound.graph, layouts.forms, *registry_);
  mark_io_devices(bound.graph, layouts.devices);
  return std::move(bound.graph);
}

std::variant<std::string, ModelGraph::Family> ModelGraph::family(const BindOptions& wanted,
                                                                 FamilySizes sizes,
                                                                 ThreadPool& pool) {
  // Sparse storage, memory of devices, and limits of memory depend on sizes.
  const bool needs_exact = !wanted.run.layouts.empty() || !wanted.run.state_pairs.empty() ||
                           wanted.run.fetches_step_outputs ||
                           wanted.limits.memory_budget_bytes != 0;
  if (needs_exact) return "the options of bind() need a plan for exact shapes";
  std::variant<std::string, Family> family;
  with_loaded([&](LoadedModel& loaded, const Log& deferred_log) {
    check_unchanged(loaded.source.mappings);
    const std::map<std::string, std::vector<int64_t>> shapes =
        sizes == FamilySizes::Typical ? typical_shapes(loaded.graph, wanted.shapes, *registry_)
                                      : wanted.shapes;
    std::variant<OpenGraph, std::string> made =
        open_graph(loaded, shapes, wanted.fetch, *registry_, pool, deferred_log);
    if (auto* const reason = std::get_if<std::string>(&made)) {
      family = std::move(*reason);
      return;
    }
    OpenGraph& open = std::get<OpenGraph>(made);
    ValueSizes of_values(loaded.graph, open, *registry_);
    family = Family{std::move(open), std::move(of_values)};
  });
  return family;
}

Graph ModelGraph::bound_with_weights(const BindOptions& wanted, ThreadPool& pool) {
  Graph graph = bound(wanted, pool);
  // Repeats only if other threads bind this model and release its weights meanwhile.
  while (find_released_weight(graph)) {
    read();
    graph = bound(wanted, pool);
  }
  return graph;
}

ModelDescription ModelGraph::describe(const Graph* bound) const {
  const ForkSafeLock lock(mutex_);
  const Graph loaded = bound ? Graph() : with_equal_names(loaded_.graph, *registry_);
  ModelDescription description = describe_model(loaded_, bound ? *bound : loaded, *registry_);
  description.file = source_.file.string();
  return description;
}

DeclaredShapes ModelGraph::declared_shapes(const BindOptions& wanted) const {
  const ForkSafeLock lock(mutex_);
  return DeclaredShapes(loaded_.graph, wanted.shape_ranges);
}

const ModelStructure& ModelGraph::locked_structure() {
  if (!structure_) {
    tuning::StructureText written =
        tuning::structure_text(loaded_.graph, tuning::ValueTypes::LeftOut);
    structure_ = {cache::digest_text(written.text), std::move(written.names)};
  }
  return *structure_;
}

const ModelStructure& ModelGraph::structure() {
  const ForkSafeLock lock(mutex_);
  return locked_structure();
}

std::vector<cache::Ingredient> ModelGraph::ingredients() { return model_ingredients(structure()); }

tuning::Binding ModelGraph::binding(const BindOptions& wanted,
                                    const std::vector<std::string>& backends, int threads) {
  const ForkSafeLock lock(mutex_);
  return bind_ingredients(loaded_.graph, locked_structure(), wanted, backends, threads);
}

std::vector<StampedFile> ModelGraph::files() const {
  const ForkSafeLock lock(mutex_);
  return loaded_.source.files;
}

void ModelGraph::check_weights() const {
  const ForkSafeLock lock(mutex_);
  check_unchanged(loaded_.source.mappings);
}

std::set<Digest> ModelGraph::weight_digests() const {
  const ForkSafeLock lock(mutex_);
  std::set<Digest> digests;
  for (const Value& value : loaded_.graph.values) {
    if (value.digest) digests.insert(*value.digest);
  }
  return digests;
}

void ModelGraph::note_packed(int64_t bytes) {
  const ForkSafeLock lock(mutex_);
  packed_bytes_ += bytes;
  if (packed_bytes_ < kMuchPackedBytes) return;
  packed_bytes_ = 0;
  drop_resident_pages(loaded_.source.mappings);
}

void ModelGraph::release_packed(BuiltPlan& built, const BuiltPlan* other, bool returns_memory) {
  // There is no file from which they could be read again.
  if (is_nested_) return;
  const ForkSafeLock lock(mutex_);
  const int64_t freed = release_packed_constants(loaded_.graph, built, other);
  if (!returns_memory || freed <= kMuchMemoryBytes) return;
  return_freed_memory();
  drop_resident_pages(loaded_.source.mappings);
}

}  // namespace tessera
