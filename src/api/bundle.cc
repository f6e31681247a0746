// Bundles: Model::save_bundle(), and their descriptions. stored_parts.cc has what load() takes from
// one.
#include "tessera/bundle.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "api/bind/planner.h"
#include "api/options/backends_state.h"
#include "api/options/bind_options.h"
#include "api/options/cache_ingredients.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "base/files/writable_path.h"
#include "base/machine/processor.h"
#include "cache/bundle_file.h"
#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"
#include "price/cost_sections.h"
#include "store/bundle.h"
#include "store/explain_cache.h"
#include "store/nested_cache.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

std::string bundle_location(const std::filesystem::path& file) {
  return "bundle '" + file.string() + "'";
}

// Throws InvalidArgument unless a bundle may be written to `file`.
void check_target(const std::filesystem::path& file) {
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(file, failure);
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorKind::InvalidArgument, bundle_location(file),
                "expected the name of a new file or of a bundle, which is replaced; found " +
                    found + "; choose another name");
  };
  if (std::filesystem::is_directory(status)) refuse("a folder");
  const std::string unwritable = explain_unwritable_file(file);
  if (!unwritable.empty()) {
    throw Error(ErrorKind::InvalidArgument, bundle_location(file), unwritable);
  }
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_regular_file(status)) refuse("something that is no file");
  const bool is_empty = std::filesystem::file_size(file, failure) == 0;
  if (!is_empty && !is_bundle(file)) refuse("a file that is no bundle");
}

}  // namespace

// Collects what binds of one model find out, and writes it with the model.
class Model::State::BundleWriter {
 public:
  BundleWriter(Model::State& model, const std::filesystem::path& file)
      : model_(model), file_(file), key_(cache::make_key(user_cache_folder())) {
    caches_.notes = {{cache::kModelNote, model_name()}};
    model_.on_bound = [this](Planner& planner, const PlanResult& result,
                             const CacheRecord* record) { add(planner, result, record); };
  }
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;
  ~BundleWriter() { model_.on_bound = nullptr; }

  void bind(BindOptions options) {
    progress_ = options.on_progress;
    if (optimize_of(options) == Optimize::Behind) options.optimize = Optimize::Now;
    {
      ThreadPool pool(options.threads);
      model_.stored.open_packs(pool);
    }
    bind_once(options);
    // The plan that processes begin with while they build another one has packs of its own.
    if (has_startup_plan_) bind_once(options);
  }

  void write() {
    if (!key_) {
      const std::filesystem::path folder = user_cache_folder();
      model_.log.warn(bundle_location(file_) +
                      " has the model and its plans, but no packed weights and kernels, because "
                      "there is no key to vouch for them: " +
                      (folder.empty() ? "neither XDG_CACHE_HOME nor HOME is set"
                                      : cache::find_or_make_key(folder).reason));
    }
    std::vector<cache::NewPart> parts;
    add_model(parts);
    add_nested_caches(nested_, "", key_ ? &*key_ : nullptr, caches_);
    // Each of these owns the bytes of a part.
    const std::string caches = cache::encode(caches_, key_ ? &*key_ : nullptr);
    parts.push_back({.kind = cache::PartKind::Caches, .name = "", .pieces = {caches}});
    std::string index;
    std::map<std::string, std::string> blobs;
    std::optional<cache::PackPieces> pack_pieces;
    if (key_ && model_.stored.are_kept()) {
      index = model_.stored.encode_index(external_);
      for (auto& [name, bytes] : model_.backends.state_->services->blobs()) {
        blobs[blob_pack_key(name)] = std::move(bytes);
      }
      pack_pieces.emplace(all_packs(blobs), processor_model(), *key_);
    }
    if (!index.empty()) {
      parts.push_back({.kind = cache::PartKind::Index, .name = "", .pieces = {index}});
    }
    if (pack_pieces) {
      parts.push_back(
          {.kind = cache::PartKind::Packs, .name = "", .pieces = pack_pieces->pieces()});
    }
    check_wanted();  // before there is a file that would be left if the process is stopped
    const cache::ReplacedFile written =
        cache::write_bundle(file_, version(), parts, [this] { check_wanted(); });
    if (written.refusal.empty()) return;
    throw Error(ErrorKind::DeviceFailed, bundle_location(file_),
                "cannot be written: " + written.refusal);
  }

 private:
  void bind_once(const BindOptions& options) {
    Executor& executor = executors_.emplace_back(model_.bind(options, {}));
    executor.wait_for_swap();
  }

  std::string model_name() const { return model_.loaded.source().file.filename().string(); }

  void check_wanted() const {
    if (!progress_) return;
    const TuneProgress now{.what = "writing '" + file_.string() + "'",
                           .phase = BindPhase::Preparing,
                           .can_stop = true};
    if (!progress_(now))
      throw Error(ErrorKind::Cancelled, bundle_location(file_), "it is not written");
  }

  // The result of one bind.
  void add(Planner& planner, const PlanResult& result, const CacheRecord* record) {
    if (result.tuning.is_stopped && !result.tuning.is_out_of_time) {
      throw Error(ErrorKind::Cancelled, bundle_location(file_),
                  "measuring was stopped, so it is not written; what was measured is kept");
    }
    const PlanRequest request = planner.request();
    caches_.ingredients = request.model;
    tuning::FoundCosts found;
    tuning::FoundPlan plan;
    std::vector<tuning::PricedLibrary> libraries;
    if (record != nullptr) {
      found = record->contents().found;
      libraries = record->contents().libraries;
      plan = record->plan();
    } else {
      libraries = request.find_versions();
    }
    if (!plan.plan) plan.plan = result.plan;
    // A search that a budget ended would be continued by each process that loads the bundle.
    plan.interrupted_seconds.reset();
    for (cache::Section& section : tuning::to_sections(found, plan, libraries, request.binding)) {
      const cache::Section* const present =
          caches_.find(section.type, section.content, section.ingredients);
      caches_.put(present == nullptr ? std::move(section)
                                     : tuning::merged(*present, std::move(section)));
    }
    for (std::shared_ptr<const CacheRecord>& nested : nested_records(result.built)) {
      nested_.push_back(std::move(nested));
    }
    has_startup_plan_ = !result.plan.startup_plan.empty();
    planner.keep_stored(result.built);
  }

  // The model as it is in its file, and the files of its external data.
  void add_model(std::vector<cache::NewPart>& parts) {
    const Log silent([](const std::string&) {});
    const std::filesystem::path& file = model_.loaded.source().file;
    const std::optional<ModelBytes>& given = model_.loaded.source().bytes;
    const ops::Registry& registry = *model_.loaded.registry();
    // Read again, because an index does not say by which names the model refers to its files.
    const ImportedModel read =
        given ? import_onnx_bytes(given->bytes, given->folder, registry, silent, given->name)
              : import_onnx(file, registry, silent);
    const std::vector<StampedFile> known = model_.loaded.files();
    for (const StampedFile& again : read.files) {
      const auto found = std::ranges::find(
          known, std::filesystem::absolute(again.path),
          [](const StampedFile& one) { return std::filesystem::absolute(one.path); });
      if (found == known.end() || found->stamp != again.stamp) {
        fail_changed(again.path, "another one");
      }
    }
    parts.push_back({.kind = cache::PartKind::Model, .name = model_name(), .pieces = {}});
    parts.back().pieces = {given ? std::string_view(given->bytes) : mapped(file)};
    for (const auto& [location, path] : read.external_files) {
      const std::string name = std::filesystem::path(location).lexically_normal().string();
      const bool is_known = std::ranges::any_of(parts, [&](const cache::NewPart& part) {
        return part.kind == cache::PartKind::ExternalData && part.name == name;
      });
      if (is_known) continue;
      parts.push_back({.kind = cache::PartKind::ExternalData, .name = name, .pieces = {}});
      std::error_code failure;
      if (std::filesystem::file_size(path, failure) > 0) parts.back().pieces = {mapped(path)};
      if (std::ranges::find(external_, path, &NamedFile::path) == external_.end()) {
        external_.push_back({path, name});
      }
    }
  }

  // The bytes of a file that the model was read from, as long as this object lives.
  std::string_view mapped(const std::filesystem::path& path) {
    const MappedWeights& weights = mapped_.emplace_back(map_weights(path));
    return {reinterpret_cast<const char*>(weights.start.get()),
            static_cast<size_t>(weights.mapping.bytes)};
  }

  std::vector<cache::StoredPack> all_packs(const std::map<std::string, std::string>& blobs) const {
    std::vector<cache::StoredPack> all = model_.stored.packs_to_bundle();
    for (const auto& [name, bytes] : blobs) all.push_back({name, bytes});
    return all;
  }

  Model::State& model_;
  const std::filesystem::path& file_;
  std::optional<cache::UserKey> key_;
  cache::CacheFile caches_;
  CacheRecords nested_;
  std::function<bool(const TuneProgress&)> progress_;
  bool has_startup_plan_ = false;    // of the newest bind
  std::vector<Executor> executors_;  // keep the packs of their plans
  std::vector<MappedWeights> mapped_;
  std::vector<NamedFile> external_;  // files of external data
};

void Model::save_bundle(const std::filesystem::path& file,
                        const std::vector<BindOptions>& binds) const {
  Model::State& origin = *state_;
  const ModelSource& source = origin.loaded.source();
  const CompileOptions& compiled = origin.loaded.options();
  if (source.bundle) {
    throw Error(ErrorKind::InvalidArgument, bundle_location(file),
                "expected a model from an ONNX file, found one from " + source.bundle->location() +
                    "; make it from the ONNX file");
  }
  check_target(file);
  // A model of its own: this one may have been loaded without an index, and may have packs for
  // other shapes.
  LoadOptions options{
      .is_strict = compiled.is_strict,
      .keeps_all_values = compiled.keeps_all_values,
      .log = [&origin](const std::string& text) { origin.log.warn(text); },
      .information_log = [&origin](const std::string& text) { origin.information_log.warn(text); },
      .backends = origin.backends,
      .threads = origin.loaded.load_threads(),
      .copies_weights = compiled.copies_weights,
      .free_inputs = compiled.free_inputs};
  const Model own = Model::State::load(
      source, options, options.free_inputs.empty() ? Keeping::Index : Keeping::None);
  own.state_->stored.set_loaded_caches(origin.stored.loaded_caches());
  Model::State::BundleWriter writer(*own.state_, file);
  for (const BindOptions& bind : binds) writer.bind(bind);
  writer.write();
}

bool is_bundle(const std::filesystem::path& file) { return Bundle::is_one(file); }

namespace {

void describe_caches(const cache::CacheFile& all, BundleDescription& description) {
  description.ingredients = describe(all.ingredients);
  description.unused = explain_other_machine(all.ingredients);
  cache::Origin origin = cache::Origin::Signed;
  for (const cache::Section& section : all.sections) {
    if (!cache::trusts_results(section.origin)) origin = section.origin;
    description.sections.push_back({.type = section.type,
                                    .content = section.content,
                                    .ingredients = describe(section.ingredients),
                                    .origin = cache::origin_text(section.origin),
                                    .seconds = section.seconds,
                                    .bytes = static_cast<int64_t>(section.bytes.size()),
                                    .made_ns = section.made_ns});
  }
  description.origin = cache::origin_text(origin);
}

}  // namespace

BundleDescription describe_bundle(const std::filesystem::path& file) {
  const std::shared_ptr<const Bundle> bundle = Bundle::open(file);
  if (bundle == nullptr) {
    std::error_code failure;
    const bool is_there = std::filesystem::exists(file, failure);
    throw Error(ErrorKind::InvalidArgument, bundle_location(file),
                std::string("expected a bundle, as `tessera bundle` writes it; found ") +
                    (is_there ? "something else" : "no such file"));
  }
  cache::check_parts(bundle->bytes(), bundle->table(), bundle->location());
  BundleDescription description{.file = file,
                                .bytes = static_cast<int64_t>(bundle->bytes().size()),
                                .version = bundle->table().version};
  for (const cache::BundlePart& part : bundle->table().parts) {
    description.parts.push_back({.kind = std::string(cache::name(part.kind)),
                                 .name = part.name,
                                 .bytes = static_cast<int64_t>(part.bytes)});
  }
  description.model = description.parts.front().name;
  const std::optional<cache::UserKey> key = cache::find_key(user_cache_folder());
  const std::shared_ptr<const BundledCache> caches = bundle->read_caches(key ? &*key : nullptr);
  if (caches == nullptr) return description;
  if (caches->bytes == nullptr) {
    description.unused = "this Tessera cannot read their format";
    return description;
  }
  const cache::CacheFile all =
      cache::decode(*caches->bytes, key ? &*key : nullptr, bundle->location());
  describe_caches(all, description);
  return description;
}

}  // namespace tessera
