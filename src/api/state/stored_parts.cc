#include "api/state/stored_parts.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "api/options/bind_options.h"
#include "api/options/cache_folders.h"
#include "api/options/cache_ingredients.h"
#include "base/files/file_stamp.h"
#include "cache/user_key.h"
#include "store/nested_cache.h"
#include "tessera/cache.h"

namespace tessera {
namespace {

// Contents of sections that hold a file of packs (cache/pack_file.h) or kernels. Their type is the
// name of the backend, or kPacks if those of all backends are saved.
constexpr const char* kPacks = "packs";
constexpr const char* kKernels = "kernels";

}  // namespace

StoredParts::StoredParts(ModelGraph& model, std::shared_ptr<BackendSet> set,
                         std::shared_ptr<StoredBlobs> blobs, std::shared_ptr<HostServices> services,
                         const Log& log)
    : model_(model),
      set_(std::move(set)),
      blobs_(std::move(blobs)),
      services_(std::move(services)),
      log_(log) {
  // Drops pages of original weights while packing, so that not all originals and packs are in
  // memory at the same time.
  packs_.set_made_watcher([this](int64_t bytes) { model_.note_packed(bytes); });
}

bool StoredParts::open(const IndexLocation& location) {
  bool is_loaded = take_index(location);
  if (model_.source().bundle) is_loaded = open_bundle(location, !is_loaded) || is_loaded;
  if (is_loaded) use_bundled_packs();
  return is_loaded;
}

void StoredParts::keep_at(IndexLocation location) {
  stored_model_ = std::make_unique<StoredModel>(std::move(location), log_.messages());
  use_bundled_packs();
}

// The index of the model that a process of this user kept; false if there is none.
bool StoredParts::take_index(const IndexLocation& location) {
  if (location.file.empty()) return false;
  std::optional<FoundModel> found = find_model(location, *set_, log_);
  if (!found) return false;
  // The bundle was opened before its index was found.
  const std::shared_ptr<const Bundle>& bundle = model_.source().bundle;
  if (bundle && !std::ranges::equal(found->model.source.files, std::array{*bundle->file()})) {
    return false;
  }
  take(*std::move(found));
  return true;
}

// Takes from the bundle what this user may use: plans, packs and kernels, and with `takes_index`
// the loaded model. Returns whether it took that.
bool StoredParts::open_bundle(const IndexLocation& location, bool takes_index) {
  const Bundle& bundle = *model_.source().bundle;
  const std::optional<cache::UserKey> key = cache::find_key(location.folder);
  bundled_cache_ = bundle.read_caches(key ? &*key : nullptr);
  // The look-up of a plan says why it is not used.
  if (bundled_cache_ == nullptr) return false;
  if (!explain_other_machine(bundled_cache_->plans.ingredients).empty()) return false;
  const bool is_verified =
      stored_model_ && bundle.file() && stored_model_->is_sound(*bundle.file());
  cache::PackFile::Opened opened;
  if (key) {
    opened = bundle.open_packs(*key, is_verified);
  } else if (bundle.table().find(cache::PartKind::Packs) != nullptr) {
    opened.reason = "packed weights and kernels of " + bundle.location() +
                    " are not used: they are another user's, as this one has no key";
  }
  if (opened.file == nullptr) {
    if (!opened.reason.empty()) log_.warn(opened.reason);
    return false;
  }
  bundled_packs_ = std::move(opened.file);
  blobs_->add_source(bundled_packs_);
  if (!takes_index) return false;
  FoundIndex found = bundle.read_index(
      bundled_index_ingredients(version(), kernel_revision(), model_.options()), *key);
  if (!found.index) return false;
  take(found_in_bundle(*std::move(found.index), location, *set_, log_));
  return true;
}

void StoredParts::take(FoundModel found) {
  model_.take(std::move(found.model), std::move(found.structure));
  stored_model_ = std::move(found.stored);
}

void StoredParts::use_bundled_packs() {
  if (bundled_packs_) stored_model_->set_bundled(bundled_packs_, model_.source().bundle->file());
}

void StoredParts::drop_packs_of_shapes() {
  packs_.drop_unused(
      [own = model_.weight_digests()](const Digest& weight) { return own.contains(weight); });
}

void StoredParts::open_packs(ThreadPool& pool) {
  if (!stored_model_) return;
  model_.with_loaded([&](LoadedModel& loaded, const Log& log) {
    const ForkSafeLock lock(mutex_);
    const PersistentPacks& persistent_packs = stored_model_->open_packs(loaded.graph, pool, log);
    packs_.set_source([&persistent_packs](const PackKey& key, int64_t bytes) {
      return persistent_packs.find_pack(key, bytes);
    });
  });
}

void StoredParts::keep(const BuiltPlan& built, int threads, const KernelLatitude& latitude) {
  if (!stored_model_) return;
  const std::vector<SavableKernel> savable =
      StoredKernels(*model_.registry(), threads, latitude, {}).savable(built);
  const ModelStructure& structure = model_.structure();
  model_.with_loaded([&](LoadedModel& loaded, const Log&) {
    const ForkSafeLock lock(mutex_);
    const int times_read = model_.times_read();
    if (times_read != times_read_) stored_model_->note_read_again();
    times_read_ = times_read;
    stored_model_->keep(loaded, structure, packs_, savable, *set_);
  });
}

void StoredParts::keep_blobs() { blobs_->keep(services_->take_new_blobs()); }

FindStoredKernel StoredParts::kernel_finder() const {
  const ForkSafeLock lock(mutex_);
  if (!stored_model_ || stored_model_->persistent_packs() == nullptr) return {};
  return [persistent_packs = stored_model_->persistent_packs()](const std::string& key) {
    return persistent_packs->find_kernel(key);
  };
}

PlanRequest StoredParts::request(const BindOptions& wanted, const std::vector<LoadedCache>& more,
                                 int threads) const {
  std::vector<std::string> asked = wanted_backends(wanted);
  for (std::string& name : asked) name = set_->resolve_alias(name);
  PlanRequest request{
      .model = model_.ingredients(),
      .model_name = model_.source().file.filename().string(),
      .binding = model_.binding(wanted, asked, threads),
      .find_versions = [set = set_, wanted] { return priced_versions(*set, wanted); },
      // Cache records keep this function, and the backends own the records: with a shared_ptr to
      // the backends it would be a reference cycle.
      .find_libraries =
          [known = std::weak_ptr(set_), wanted](const std::vector<std::string>& names) {
            const std::shared_ptr<BackendSet> alive = known.lock();
            return alive ? find_libraries(alive, wanted)(names)
                         : std::vector<tuning::PricedLibrary>();
          },
      .given = more,
      .bundled = bundled_cache_,
      .folders = cache_folders(wanted),
      .key_folder = user_cache_folder(),
      .is_frozen = wanted.cache.frozen,
      .looks_up = !wanted.cache.retune,
      .budget_seconds = wanted.limits.tune_budget_seconds};
  const ForkSafeLock lock(mutex_);
  request.given.insert(request.given.end(), loaded_caches_.begin(), loaded_caches_.end());
  return request;
}

std::shared_ptr<const CacheRecord> StoredParts::newest_record() const {
  const ForkSafeLock lock(mutex_);
  return newest_record_;
}

CacheRecords StoredParts::newest_nested_records() const {
  const ForkSafeLock lock(mutex_);
  return newest_nested_records_;
}

void StoredParts::note_record(std::shared_ptr<const CacheRecord> record, CacheRecords nested) {
  if (record == nullptr) return;
  const ForkSafeLock lock(mutex_);
  newest_record_ = std::move(record);
  newest_nested_records_ = std::move(nested);
}

std::vector<LoadedCache> StoredParts::nested_caches(std::span<const cache::Ingredient> ingredients,
                                                    const std::vector<LoadedCache>& more) const {
  std::vector<LoadedCache> found;
  std::optional<std::optional<cache::UserKey>> key;  // read once, and only if there are files
  const auto look_into = [&](const std::filesystem::path& path, const cache::CacheFile& file,
                             const std::string& type) {
    if (!key) key = cache::find_key(user_cache_folder());
    std::optional<cache::CacheFile> nested = find_nested_cache(
        file, ingredients, *key ? &**key : nullptr, "cache '" + path.string() + "'");
    if (nested) found.push_back({path, *std::move(nested), type});
  };
  for (const LoadedCache& given : more) look_into(given.path, given.file, given.type);
  {
    const ForkSafeLock lock(mutex_);
    for (const LoadedCache& given : loaded_caches_) look_into(given.path, given.file, given.type);
  }
  if (bundled_cache_ != nullptr) look_into(bundled_cache_->path, bundled_cache_->plans, "");
  return found;
}

std::vector<LoadedCache> StoredParts::loaded_caches() const {
  const ForkSafeLock lock(mutex_);
  return loaded_caches_;
}

void StoredParts::set_loaded_caches(std::vector<LoadedCache> caches) {
  const ForkSafeLock lock(mutex_);
  loaded_caches_ = std::move(caches);
}

void StoredParts::add_cache(LoadedCache given) {
  const ForkSafeLock lock(mutex_);
  const auto known = std::ranges::find_if(loaded_caches_, [&](const LoadedCache& other) {
    return other.type == given.type && (other.path == given.path || other.file == given.file);
  });
  if (known == loaded_caches_.end()) {
    loaded_caches_.push_back(std::move(given));
  } else {
    *known = std::move(given);
  }
}

void StoredParts::take_packs(const LoadedCache& given) {
  for (const cache::Section& section : given.file.sections) {
    if (section.content != kPacks && section.content != kKernels) continue;
    if (!given.type.empty() && section.type != given.type && section.type != kPacks) continue;
    if (given.type == tuning::kPlanSection) continue;
    const std::string reason = [&]() -> std::string {
      const ForkSafeLock lock(mutex_);
      if (!stored_model_) return "this model keeps no index";
      return stored_model_->add_packs(section, given.path);
    }();
    // Without the mutex: the callback of the log may call the model.
    if (!reason.empty()) log_.warn(reason);
  }
}

std::vector<cache::Section> StoredParts::sections(const std::string& backend, bool with_packs) {
  std::vector<cache::Section> sections;
  const auto add = [&](const char* content, std::optional<std::string> bytes) {
    if (!bytes || bytes->empty()) return;
    sections.push_back({.type = backend.empty() ? kPacks : backend,
                        .content = content,
                        .made_ns = system_time_ns(),
                        .bytes = *std::move(bytes)});
  };
  model_.with_loaded([&](LoadedModel& loaded, const Log& log) {
    const ForkSafeLock lock(mutex_);
    if (!stored_model_ || stored_model_->persistent_packs() == nullptr) {
      if (with_packs) log.warn("the packs are not saved: this model keeps none");
      return;
    }
    PersistentPacks& persistent_packs = *stored_model_->persistent_packs();
    add(kKernels, persistent_packs.encode_kernels(backend));
    if (!with_packs) return;
    std::optional<std::string> bytes = persistent_packs.encode_packs(loaded, packs_, backend);
    if (!bytes) log.warn("the packs are not saved: there is no folder of the user's with a key");
    add(kPacks, std::move(bytes));
  });
  return sections;
}

std::string StoredParts::encode_index(std::span<const NamedFile> files) {
  const std::vector<cache::Ingredient> ingredients =
      bundled_index_ingredients(version(), kernel_revision(), model_.options());
  const ModelStructure& structure = model_.structure();
  std::string index;
  model_.with_loaded([&](LoadedModel& loaded, const Log&) {
    const ForkSafeLock lock(mutex_);
    index = stored_model_->encode_index(loaded, structure, *set_, ingredients, files);
  });
  return index;
}

std::vector<cache::StoredPack> StoredParts::packs_to_bundle() {
  std::vector<cache::StoredPack> packs;
  model_.with_loaded([&](LoadedModel& loaded, const Log&) {
    const ForkSafeLock lock(mutex_);
    const PersistentPacks* const stored = stored_model_->persistent_packs();
    if (stored != nullptr) packs = stored->packs_to_bundle(loaded, packs_);
  });
  return packs;
}

}  // namespace tessera
