#include "store/stored_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/module_folder.h"
#include "base/processor.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

// The pack of a weight that some kernel reads as it is.
constexpr const char* kPlain = "plain";
constexpr const char* kKernelFile = "kernel.packs";
constexpr size_t kNameDigits = 16;

std::string short_digest(const std::string& text) {
  return cache::digest_text(text).substr(0, kNameDigits);
}

// Whether it is in a format of the backend's: its ingredients, behind the weight's digest and the
// id, begin with the name.
bool is_pack_of(const std::string& key, const std::string& backend) {
  const size_t id = key.find(';');
  const size_t ingredients = id == std::string::npos ? id : key.find(';', id + 1);
  return ingredients != std::string::npos &&
         key.compare(ingredients + 1, backend.size(), backend) == 0;
}

std::string stamp_text(const FileStamp& stamp) {
  return std::to_string(stamp.device) + ":" + std::to_string(stamp.inode) + " " +
         std::to_string(stamp.bytes) + " " + std::to_string(stamp.modified_ns) + " " +
         std::to_string(stamp.changed_ns);
}

// Which code it was that loaded: an index holds what that came to.
std::string build_text() {
  const std::optional<FileStamp> stamp = stamp_of(module_file());
  return stamp ? stamp_text(*stamp) : "";
}

std::vector<std::filesystem::path> packs_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.path().extension() == cache::kPacksEnding) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

StoredModel::StoredModel(std::filesystem::path folder, const std::filesystem::path& model,
                         const std::string& version, const CompileOptions& options,
                         bool strict_stamps)
    : folder_(std::move(folder)), started_ns_(system_time_ns()), strict_stamps_(strict_stamps) {
  if (folder_.empty()) return;
  std::error_code failure;
  model_ = std::filesystem::canonical(model, failure);
  const std::string build = build_text();
  if (failure || build.empty()) {
    folder_.clear();
    return;
  }
  ingredients_ = {{"tessera", version},
                  {"build", build},
                  {"model file", model_.string()},
                  {"strict", options.is_strict ? "yes" : "no"},
                  {"all values", options.keeps_all_values ? "yes" : "no"},
                  {"copied weights", options.copies_weights ? "yes" : "no"},
                  {"strict stamps", strict_stamps ? "yes" : "no"}};
  index_ = folder_ / "models" /
           (text(cache::fingerprint_of(ingredients_)).substr(0, kNameDigits) + ".model");
}

std::optional<LoadedModel> StoredModel::load(ModelStructure& structure, BackendSet& set,
                                             const Log& log) {
  if (!key_) key_ = cache::find_key(folder_);
  if (!key_) return std::nullopt;
  FoundIndex found = read_model_index(index_, ingredients_, *key_);
  if (!found.index) return std::nullopt;
  cache::note_use(index_);
  ModelIndex& index = *found.index;
  set.remember(index.plugins);
  plugins_ = std::move(index.plugins);
  trusted_ = std::move(index.packs);
  weights_ = std::move(index.weights);
  structure = std::move(index.structure);
  warnings_ = std::move(index.warnings);
  for (const std::string& warning : warnings_) log.warn(warning);
  has_index_ = true;
  return std::move(index.model);
}

void StoredModel::settle_weights(Graph& graph, ThreadPool& pool) {
  std::string digests;
  for (Value& value : graph.values) {
    if (!value.is_constant() || value.is_state || value.sparse_constant) continue;
    if (value.constant.bytes() <= TESSERA_SMALL_CONSTANT_BYTES) continue;
    // Tables of whole numbers have digests too: the text of a group contains them.
    if (!value.digest) value.digest = digest_of(value.constant, &pool);
    if (!is_large_weight(value)) continue;
    digests += text(PackKey{.weight = *value.digest});
  }
  weights_ = short_digest(digests);
}

void StoredModel::open_packs(Graph& graph, ThreadPool& pool, const Log& log) {
  if (are_packs_open_ || folder_.empty()) return;
  are_packs_open_ = true;
  if (!key_) key_ = cache::find_key(folder_);
  if (weights_.empty()) settle_weights(graph, pool);
  if (!key_) return;
  for (const std::filesystem::path& path : packs_in(packs_folder())) open_file(path, &log);
  cache::note_use(packs_folder());
  for (Value& value : graph.values) {
    if (!is_large_weight(value) || value.constant.has_elements() || !value.digest) continue;
    const std::shared_ptr<const void> stored =
        find_pack({.weight = *value.digest, .id = kPlain}, value.constant.bytes());
    if (stored == nullptr) continue;
    value.constant = Tensor(value.constant.type(), value.constant.dims(), stored, stored.get());
  }
}

std::shared_ptr<cache::PackFile> StoredModel::open_file(const std::filesystem::path& path,
                                                        const Log* log) {
  std::optional<FileStamp> stamp;
  {
    const std::shared_lock lock(files_mutex_);
    for (const StampedFile& one : trusted_) {
      if (one.path == path) stamp = one.stamp;
    }
  }
  cache::PackFile::Opened opened = cache::PackFile::open(path, processor_model(), *key_, stamp);
  if (opened.file == nullptr) {
    if (log != nullptr) log->warn(opened.reason);
    return nullptr;
  }
  add_file(path, opened.file);
  return opened.file;
}

// Of what it is, whichever model has it: two with the same region have one.
std::filesystem::path StoredModel::kernel_folder(const std::string& key) const {
  return folder_ / "kernels" / short_digest(key);
}

std::string StoredModel::add_packs(const std::string& bytes, const std::filesystem::path& file) {
  const std::string place = "packs in '" + file.string() + "'";
  const std::optional<cache::UserKey> key = cache::find_key(folder_);
  if (!key) return place + " are not used: they are another user's, as this one has no key";
  cache::PackFile::Opened opened = cache::PackFile::over(bytes, place, processor_model(), *key);
  if (opened.file == nullptr) return opened.reason;
  const std::unique_lock lock(files_mutex_);
  given_.push_back(std::move(opened.file));
  return "";
}

void StoredModel::add_file(const std::filesystem::path& path,
                           std::shared_ptr<cache::PackFile> file) {
  const std::unique_lock lock(files_mutex_);
  files_.push_back({path, std::move(file)});
}

std::shared_ptr<const void> StoredModel::find_pack(const PackKey& key, int64_t bytes) const {
  const std::string name = text(key);
  const std::shared_lock lock(files_mutex_);
  for (const OpenFile& open : files_) {
    if (auto found = open.file->find(name, bytes)) return found;
  }
  for (const std::shared_ptr<cache::PackFile>& given : given_) {
    if (auto found = given->find(name, bytes)) return found;
  }
  return nullptr;
}

std::optional<StoredKernel> StoredModel::find_kernel(const std::string& key) {
  const auto find_in = [&](cache::PackFile& file) -> std::optional<StoredKernel> {
    std::optional<cache::PackFile::Found> found = file.find(key);
    if (!found) return std::nullopt;
    return StoredKernel{std::move(found->bytes), found->size};
  };
  {
    const std::shared_lock lock(files_mutex_);
    for (const OpenFile& open : files_) {
      if (auto found = find_in(*open.file)) return found;
    }
  }
  const std::filesystem::path path = kernel_folder(key) / kKernelFile;
  std::error_code failure;
  if (key_ && std::filesystem::exists(path, failure)) {
    const std::shared_ptr<cache::PackFile> file = open_file(path, nullptr);
    if (file != nullptr) {
      cache::note_use(path.parent_path());
      if (auto found = find_in(*file)) return found;
    }
  }
  const std::shared_lock lock(files_mutex_);
  for (const std::shared_ptr<cache::PackFile>& given : given_) {
    if (auto found = find_in(*given)) return found;
  }
  return std::nullopt;
}

bool StoredModel::is_stored(const std::string& key) const {
  return std::any_of(files_.begin(), files_.end(),
                     [&](const OpenFile& open) { return open.file->has(key); });
}

std::vector<cache::StoredPack> StoredModel::packs_to_store(LoadedModel& model,
                                                           const PackStore& packs,
                                                           bool with_stored) const {
  std::vector<cache::StoredPack> wanted;
  std::set<std::string> seen;
  const auto add = [&](const PackKey& key, const void* bytes, int64_t size) {
    std::string name = text(key);
    if ((!with_stored && is_stored(name)) || !seen.insert(name).second) return;
    wanted.push_back(
        {std::move(name), {static_cast<const char*>(bytes), static_cast<size_t>(size)}});
  };
  for (const PackStore::Pack& pack : packs.all()) add(pack.key, pack.bytes.get(), pack.size);
  const auto is_mapped = [&](const Tensor& tensor) {
    const auto* const data = static_cast<const std::byte*>(tensor.data());
    return std::any_of(model.source.mappings.begin(), model.source.mappings.end(),
                       [&](const WeightMapping& mapping) {
                         const auto start = mapping.start.lock();
                         return start != nullptr && data >= start.get() &&
                                data < start.get() + mapping.bytes;
                       });
  };
  for (Value& value : model.graph.values) {
    if (!is_large_weight(value) || !value.constant.has_elements()) continue;
    if (is_mapped(value.constant)) continue;
    if (!value.digest) value.digest = digest_of(value.constant);
    add({.weight = *value.digest, .id = kPlain}, value.constant.data(), value.constant.bytes());
  }
  return wanted;
}

// What a library fails to save is built again by the next process.
std::vector<StoredModel::NamedBytes> StoredModel::kernels_to_store(
    const std::vector<SavableKernel>& kernels) const {
  std::vector<NamedBytes> wanted;
  std::set<std::string> seen;
  for (const SavableKernel& kernel : kernels) {
    if (is_stored(kernel.key) || !seen.insert(kernel.key).second) continue;
    try {
      wanted.push_back({kernel.key, kernel.kernel->save()});
    } catch (const Error&) {
      continue;
    }
  }
  return wanted;
}

std::optional<std::string> StoredModel::encode_packs(LoadedModel& model, const PackStore& packs,
                                                     const std::string& backend) {
  if (!key_) key_ = cache::make_key(folder_);
  if (!key_) return std::nullopt;
  std::vector<cache::StoredPack> all = packs_to_store(model, packs, /*with_stored=*/true);
  if (!backend.empty()) {
    std::erase_if(all,
                  [&](const cache::StoredPack& pack) { return !is_pack_of(pack.key, backend); });
  }
  return all.empty() ? "" : cache::encode_packs(all, processor_model(), *key_);
}

std::optional<std::string> StoredModel::encode_kernels(const std::string& backend) {
  if (!key_) return std::nullopt;
  std::vector<cache::StoredPack> all;
  std::vector<StoredKernel> held;
  const std::shared_lock lock(files_mutex_);
  for (const OpenFile& open : files_) {
    for (const std::string& key : open.file->keys()) {
      if (!is_kernel_key(key) || (!backend.empty() && !is_kernel_of(key, backend))) continue;
      std::optional<cache::PackFile::Found> found = open.file->find(key);
      if (!found) continue;
      held.push_back({found->bytes, found->size});
      all.push_back(
          {key,
           {static_cast<const char*>(held.back().bytes.get()), static_cast<size_t>(found->size)}});
    }
  }
  return all.empty() ? "" : cache::encode_packs(all, processor_model(), *key_);
}

// What is damaged makes room for what is not.
void StoredModel::drop_damaged() {
  const std::unique_lock lock(files_mutex_);
  std::erase_if(files_, [](const OpenFile& open) {
    if (open.file->is_sound()) return false;
    std::error_code failure;
    std::filesystem::remove(open.path, failure);
    return true;
  });
}

// Where it cannot be written, nothing is lost but time.
void StoredModel::write_file(const std::filesystem::path& path,
                             std::span<const cache::StoredPack> packs) {
  if (!cache::make_private_folder(path.parent_path()).empty()) return;
  cache::sweep(path.parent_path());
  if (!cache::write_packs(path, packs, processor_model(), *key_).empty()) return;
  cache::PackFile::Opened written =
      cache::PackFile::open(path, processor_model(), *key_, std::nullopt);
  if (written.file != nullptr && written.file->is_sound()) add_file(path, std::move(written.file));
}

// Whether the list of files that are known to be right has changed.
bool StoredModel::keep_packs(LoadedModel& model, const PackStore& packs,
                             const std::vector<SavableKernel>& kernels) {
  drop_damaged();
  const std::vector<cache::StoredPack> wanted = packs_to_store(model, packs, false);
  std::string names;
  for (const cache::StoredPack& pack : wanted) names += pack.key + "\n";
  if (!wanted.empty())
    write_file(packs_folder() / (short_digest(names) + cache::kPacksEnding), wanted);
  const std::vector<NamedBytes> saved = kernels_to_store(kernels);
  for (const NamedBytes& kernel : saved) {
    const cache::StoredPack one{kernel.key, kernel.bytes};
    write_file(kernel_folder(kernel.key) / kKernelFile, {&one, 1});
  }
  if (!wanted.empty() || !saved.empty()) {
    cache::sweep(folder_);
    cache::prune(cache::list_kept_files(folder_), cache::kUserLimits);
  }
  std::vector<StampedFile> right;
  for (const OpenFile& open : files_) {
    if (open.file->stamp()) right.push_back({open.path, *open.file->stamp()});
  }
  const bool is_same = std::equal(right.begin(), right.end(), trusted_.begin(), trusted_.end(),
                                  [](const StampedFile& left, const StampedFile& other) {
                                    return left.path == other.path && left.stamp == other.stamp;
                                  });
  const std::unique_lock lock(files_mutex_);
  trusted_ = std::move(right);
  return !is_same;
}

void StoredModel::keep(LoadedModel& model, const ModelStructure& structure, const PackStore& packs,
                       const std::vector<SavableKernel>& kernels, const BackendSet& set) {
  if (folder_.empty()) return;
  if (!key_) key_ = cache::make_key(folder_);
  if (!key_ || weights_.empty()) return;
  const bool has_new_packs = keep_packs(model, packs, kernels);
  std::vector<RememberedPlugin> plugins = set.remembered();
  if (has_index_ && !has_new_packs && plugins == plugins_) return;
  // Somebody could write to a file while it was read, without a trace in its stamp.
  if (model.source.lease == ReadLease::Writer) return;
  if (strict_stamps_ && model.source.lease != ReadLease::Granted) return;
  std::vector<StampedFile> files;
  for (const StampedFile& file : model.source.files) {
    // Written to while it was read, perhaps.
    if (!is_settled(file.stamp, started_ns_)) return;
    files.push_back({std::filesystem::absolute(file.path), file.stamp});
  }
  plugins_ = std::move(plugins);
  const ModelIndex index{.files = std::move(files),
                         .plugins = plugins_,
                         .packs = trusted_,
                         .warnings = warnings_,
                         .weights = weights_,
                         .structure = structure,
                         .model = model};
  if (!cache::make_private_folder(index_.parent_path()).empty()) return;
  cache::sweep(index_.parent_path());
  has_index_ = write_model_index(index_, ingredients_, *key_, index).empty();
}

}  // namespace tessera
