#include "store/stored_model.h"

#include <algorithm>
#include <utility>

#include "base/machine/processor.h"
#include "base/process/module_folder.h"
#include "cache/cache_folder.h"
#include "cache/digest.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "tessera/backend_abi.h"

namespace tessera {
namespace {

std::string stamp_text(const FileStamp& stamp) {
  return std::to_string(stamp.device) + ":" + std::to_string(stamp.inode) + " " +
         std::to_string(stamp.bytes) + " " + std::to_string(stamp.modified_ns) + " " +
         std::to_string(stamp.changed_ns);
}

// Identifies the code that loads the model, because the index contains its result.
std::string build_text() {
  const std::optional<FileStamp> stamp = stamp_of(module_file());
  return stamp ? stamp_text(*stamp) : "";
}

// A digest that identifies all large weights. Reads the weights whose digests are not known yet.
std::string name_weights(Graph& graph, ThreadPool& pool) {
  std::string digests;
  for (Value& value : graph.values) {
    if (!value.is_constant() || value.is_state || value.sparse_constant) continue;
    if (value.constant.bytes() <= TESSERA_SMALL_CONSTANT_BYTES) continue;
    // Large integer tensors get digests too, because the text of a group contains them.
    if (!value.digest) value.digest = digest_of(value.constant, &pool);
    if (!is_large_weight(value)) continue;
    digests += text(PackKey{.weight = *value.digest});
  }
  return short_digest(digests);
}

bool are_same(const std::vector<StampedFile>& left, const std::vector<StampedFile>& right) {
  return std::ranges::equal(left, right, [](const StampedFile& one, const StampedFile& other) {
    return one.path == other.path && one.stamp == other.stamp;
  });
}

}  // namespace

std::optional<IndexLocation> index_location(const std::filesystem::path& folder,
                                            const std::filesystem::path& model,
                                            const std::string& version,
                                            const CompileOptions& options, bool strict_stamps) {
  if (folder.empty()) return std::nullopt;
  IndexLocation location{
      .folder = folder, .started_ns = system_time_ns(), .is_strict = strict_stamps};
  std::error_code failure;
  const std::filesystem::path file = std::filesystem::canonical(model, failure);
  const std::string build = build_text();
  if (failure || build.empty()) return std::nullopt;
  location.ingredients = {{"tessera", version},
                          {"build", build},
                          {"model file", file.string()},
                          {"strict", options.is_strict ? "yes" : "no"},
                          {"all values", options.keeps_all_values ? "yes" : "no"},
                          {"copied weights", options.copies_weights ? "yes" : "no"},
                          {"strict stamps", strict_stamps ? "yes" : "no"}};
  const std::string name = text(cache::fingerprint_of(location.ingredients)).substr(0, kNameDigits);
  location.file = folder / "models" / (name + ".model");
  return location;
}

std::optional<FoundModel> find_model(const IndexLocation& location, BackendSet& set,
                                     const Log& log) {
  const std::optional<cache::UserKey> key = cache::find_key(location.folder);
  if (!key) return std::nullopt;
  FoundIndex found = read_model_index(location.file, location.ingredients, *key);
  if (!found.index) return std::nullopt;
  cache::note_use(location.file);
  ModelIndex& index = *found.index;
  set.remember(index.plugins);
  for (const std::string& warning : index.warnings) log.warn(warning);
  auto stored = std::make_unique<StoredModel>(location, index);
  return FoundModel{std::move(index.model), std::move(index.structure), std::move(stored)};
}

FoundModel found_in_bundle(ModelIndex index, IndexLocation location, BackendSet& set,
                           const Log& log) {
  set.remember(index.plugins);
  for (const std::string& warning : index.warnings) log.warn(warning);
  auto stored = std::make_unique<StoredModel>(std::move(location), index);
  stored->note_read_again();
  return {std::move(index.model), std::move(index.structure), std::move(stored)};
}

bool StoredModel::is_sound(const StampedFile& file) const {
  return std::ranges::find(sound_, file) != sound_.end();
}

std::string StoredModel::encode_index(const LoadedModel& model, const ModelStructure& structure,
                                      const BackendSet& set,
                                      std::span<const cache::Ingredient> ingredients,
                                      std::span<const NamedFile> files) const {
  const std::optional<cache::UserKey> key = cache::find_key(location_.folder);
  if (!key) return "";
  ModelIndex index{.files = model.source.files,
                   .plugins = set.remembered(),
                   .packs = {},
                   .warnings = warnings_,
                   .weights = weights_,
                   .structure = structure,
                   .model = model};
  for (StampedFile& file : index.files) file.path = std::filesystem::absolute(file.path);
  return encode_model_index(ingredients, *key, std::move(index), files);
}

StoredModel::StoredModel(IndexLocation location, std::vector<std::string> warnings)
    : location_(std::move(location)), warnings_(std::move(warnings)) {}

StoredModel::StoredModel(IndexLocation location, ModelIndex& index)
    : location_(std::move(location)),
      has_index_(true),
      sound_(std::move(index.packs)),
      plugins_(std::move(index.plugins)),
      warnings_(std::move(index.warnings)),
      weights_(std::move(index.weights)) {}

PersistentPacks& StoredModel::open_packs(Graph& graph, ThreadPool& pool, const Log& log) {
  if (persistent_packs_) return *persistent_packs_;
  if (weights_.empty()) weights_ = name_weights(graph, pool);
  persistent_packs_ = std::make_unique<PersistentPacks>(location_.folder, weights_, sound_, log);
  for (GivenPacks& given : given_) persistent_packs_->add(std::move(given));
  given_.clear();
  if (bundled_ != nullptr) persistent_packs_->set_bundled(bundled_, bundle_);
  persistent_packs_->restore_weights(graph);
  return *persistent_packs_;
}

std::string StoredModel::add_packs(const cache::Section& section,
                                   const std::filesystem::path& file) {
  const std::string location = "packs in '" + file.string() + "'";
  const std::optional<cache::UserKey> key = cache::find_key(location_.folder);
  if (!key) return location + " are not used: they are another user's, as this one has no key";
  cache::PackFile::Opened opened =
      cache::PackFile::over(section.bytes, location, processor_model(), *key);
  if (opened.file == nullptr) return opened.reason;
  GivenPacks given{.source = file.string() + "\n" + section.type + "\n" + section.content,
                   .digest = cache::digest_of(section.bytes),
                   .file = std::move(opened.file)};
  if (persistent_packs_) {
    persistent_packs_->add(std::move(given));
  } else {
    put(given_, std::move(given));
  }
  return "";
}

void StoredModel::keep(LoadedModel& model, const ModelStructure& structure, const PackStore& packs,
                       const std::vector<SavableKernel>& kernels, const BackendSet& set) {
  if (!persistent_packs_ || location_.file.empty()) return;
  persistent_packs_->keep(model, packs, kernels);
  const std::optional<cache::UserKey> key = cache::find_key(location_.folder);
  if (!key) return;
  std::vector<StampedFile> sound = persistent_packs_->sound_files();
  std::vector<RememberedPlugin> plugins = set.remembered();
  if (has_index_ && are_same(sound, sound_) && plugins == plugins_) return;
  // The file was open for writing, so it may have changed during reading without a change of its
  // stamp.
  if (model.source.lease == ReadLease::Writer) return;
  if (location_.is_strict && model.source.lease != ReadLease::Granted) return;
  std::vector<StampedFile> files;
  for (const StampedFile& file : model.source.files) {
    // The file may have been written to while it was read.
    if (!is_reliable(file.stamp, location_.started_ns)) return;
    files.push_back({std::filesystem::absolute(file.path), file.stamp});
  }
  sound_ = std::move(sound);
  plugins_ = std::move(plugins);
  const ModelIndex index{.files = std::move(files),
                         .plugins = plugins_,
                         .packs = sound_,
                         .warnings = warnings_,
                         .weights = weights_,
                         .structure = structure,
                         .model = model};
  if (!cache::make_private_folder(location_.file.parent_path()).empty()) return;
  cache::sweep(location_.file.parent_path());
  has_index_ = write_model_index(location_.file, location_.ingredients, *key, index).empty();
}

}  // namespace tessera
