#include "store/persistent_packs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/machine/processor.h"
#include "base/threads/fork.h"
#include "cache/cache_folder.h"
#include "cache/digest.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "store/model_index.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The pack id of a weight that some kernel reads unpacked.
constexpr const char* kPlain = "plain";
constexpr const char* kKernelFile = "kernel.packs";

// Whether the pack is in a format of `backend`. In a key, the digest of the weight and the id are
// followed by the ingredients, which begin with the name of the backend.
bool is_pack_of(const std::string& key, const std::string& backend) {
  const size_t id = key.find(';');
  const size_t ingredients = id == std::string::npos ? id : key.find(';', id + 1);
  return ingredients != std::string::npos &&
         key.compare(ingredients + 1, backend.size(), backend) == 0;
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

std::string short_digest(const std::string& text) {
  return cache::digest_text(text).substr(0, kNameDigits);
}

void put(std::vector<GivenPacks>& all, GivenPacks given) {
  const auto known = std::ranges::find_if(all, [&](const GivenPacks& other) {
    return other.source == given.source || other.digest == given.digest;
  });
  if (known == all.end()) {
    all.push_back(std::move(given));
  } else {
    *known = std::move(given);
  }
}

PersistentPacks::PersistentPacks(std::filesystem::path folder, const std::string& weights,
                                 std::vector<StampedFile> sound, const Log& log)
    : folder_(std::move(folder)),
      packs_folder_(folder_ / "packs" / weights),
      sound_(std::move(sound)),
      key_(cache::find_key(folder_)) {
  if (!key_) return;
  for (const std::filesystem::path& path : packs_in(packs_folder_)) open_file(path, &log);
  cache::note_use(packs_folder_);
}

void PersistentPacks::restore_weights(Graph& graph) const {
  for (Value& value : graph.values) {
    if (!is_large_weight(value) || value.constant.has_elements() || !value.digest) continue;
    const std::shared_ptr<const void> stored =
        find_pack({.weight = *value.digest, .id = kPlain}, value.constant.bytes());
    if (stored == nullptr) continue;
    value.constant = Tensor(value.constant.type(), value.constant.dims(), stored, stored.get());
  }
}

std::shared_ptr<cache::PackFile> PersistentPacks::open_file(const std::filesystem::path& path,
                                                            const Log* log) {
  const auto known = std::ranges::find(sound_, path, &StampedFile::path);
  const auto stamp = known == sound_.end() ? std::nullopt : std::optional(known->stamp);
  cache::PackFile::Opened opened = cache::PackFile::open(path, processor_model(), *key_, stamp);
  if (opened.file == nullptr) {
    if (log != nullptr && !opened.is_of_other_version) log->warn(opened.reason);
    return nullptr;
  }
  add_file(path, opened.file);
  return opened.file;
}

// Depends only on the key, so models that contain the same region share the kernel.
std::filesystem::path PersistentPacks::kernel_folder(const std::string& key) const {
  return folder_ / "kernels" / short_digest(key);
}

void PersistentPacks::add_file(const std::filesystem::path& path,
                               std::shared_ptr<cache::PackFile> file) {
  const ForkSafeLock lock(mutex_);
  files_.push_back({path, std::move(file)});
}

void PersistentPacks::fail_damaged_bundle() const {
  throw Error(
      ErrorKind::Corrupt, bundle_ ? "bundle '" + bundle_->path.string() + "'" : "the given bundle",
      "expected packed weights as they were written, found other bytes; it is damaged: make "
      "the bundle again");
}

std::shared_ptr<const void> PersistentPacks::find_pack(const PackKey& key, int64_t bytes) const {
  const std::string name = text(key);
  const ForkSafeLock lock(mutex_);
  for (const OpenFile& open : files_) {
    if (auto found = open.file->find(name, bytes)) return found;
  }
  if (bundled_ != nullptr) {
    if (auto found = bundled_->find(name, bytes)) return found;
    if (bundled_->is_damaged(name)) fail_damaged_bundle();
  }
  for (const GivenPacks& given : given_) {
    if (auto found = given.file->find(name, bytes)) return found;
  }
  return nullptr;
}

std::optional<StoredKernel> PersistentPacks::find_kernel(const std::string& key) {
  const auto find_in = [&](cache::PackFile& file) -> std::optional<StoredKernel> {
    std::optional<cache::PackFile::Found> found = file.find(key);
    if (!found) return std::nullopt;
    return StoredKernel{std::move(found->bytes), found->size};
  };
  {
    const ForkSafeLock lock(mutex_);
    for (const OpenFile& open : files_) {
      if (auto found = find_in(*open.file)) return found;
    }
    if (bundled_ != nullptr) {
      if (auto found = find_in(*bundled_)) return found;
    }
  }
  const std::filesystem::path path = kernel_folder(key) / kKernelFile;
  std::error_code failure;
  if (has_key() && std::filesystem::exists(path, failure)) {
    const std::shared_ptr<cache::PackFile> file = open_file(path, nullptr);
    if (file != nullptr) {
      cache::note_use(path.parent_path());
      if (auto found = find_in(*file)) return found;
    }
  }
  const ForkSafeLock lock(mutex_);
  for (const GivenPacks& given : given_) {
    if (auto found = find_in(*given.file)) return found;
  }
  return std::nullopt;
}

// A key is never reset: after this function has returned true, `key_` can be read without a lock.
bool PersistentPacks::has_key() const {
  const ForkSafeLock lock(mutex_);
  return key_.has_value();
}

bool PersistentPacks::has_key_or_makes_one() {
  const ForkSafeLock lock(mutex_);
  if (!key_) key_ = cache::make_key(folder_);
  return key_.has_value();
}

bool PersistentPacks::is_stored(const std::string& key) const {
  const ForkSafeLock lock(mutex_);
  return (bundled_ != nullptr && bundled_->has(key)) ||
         std::any_of(files_.begin(), files_.end(),
                     [&](const OpenFile& open) { return open.file->has(key); });
}

std::vector<cache::StoredPack> PersistentPacks::packs_to_store(LoadedModel& model,
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

void PersistentPacks::add(GivenPacks given) {
  const ForkSafeLock lock(mutex_);
  put(given_, std::move(given));
}

void PersistentPacks::set_bundled(std::shared_ptr<cache::PackFile> packs,
                                  std::optional<StampedFile> file) {
  const ForkSafeLock lock(mutex_);
  bundled_ = std::move(packs);
  bundle_ = std::move(file);
}

std::vector<cache::StoredPack> PersistentPacks::packs_to_bundle(LoadedModel& model,
                                                                const PackStore& packs) const {
  std::vector<cache::StoredPack> wanted = packs_to_store(model, packs, /*with_stored=*/true);
  const ForkSafeLock lock(mutex_);
  for (const OpenFile& open : files_) {
    for (const std::string& key : open.file->keys()) {
      if (!is_kernel_key(key)) continue;
      const std::optional<cache::PackFile::Found> found = open.file->find(key);
      if (!found) continue;
      wanted.push_back(
          {key, {static_cast<const char*>(found->bytes.get()), static_cast<size_t>(found->size)}});
    }
  }
  std::set<std::string> seen;
  std::erase_if(wanted,
                [&](const cache::StoredPack& pack) { return !seen.insert(pack.key).second; });
  return wanted;
}

// Returns whether there were kernels to store. If a library fails to save a kernel, the next
// process builds it again.
bool PersistentPacks::keep_kernels(const std::vector<SavableKernel>& kernels) {
  std::set<std::string> seen;
  for (const SavableKernel& kernel : kernels) {
    if (is_stored(kernel.key) || !seen.insert(kernel.key).second) continue;
    try {
      const std::string bytes = kernel.kernel->save();
      const cache::StoredPack one{kernel.key, bytes};
      // There may be many, and each is soon made again.
      write_file(kernel_folder(kernel.key) / kKernelFile, {&one, 1}, cache::Durability::Unsynced);
    } catch (const Error&) {
      continue;
    }
  }
  return !seen.empty();
}

std::optional<std::string> PersistentPacks::encode_packs(LoadedModel& model, const PackStore& packs,
                                                         const std::string& backend) {
  if (!has_key_or_makes_one()) return std::nullopt;
  std::vector<cache::StoredPack> all = packs_to_store(model, packs, /*with_stored=*/true);
  if (!backend.empty()) {
    std::erase_if(all,
                  [&](const cache::StoredPack& pack) { return !is_pack_of(pack.key, backend); });
  }
  return all.empty() ? "" : cache::encode_packs(all, processor_model(), *key_);
}

std::optional<std::string> PersistentPacks::encode_kernels(const std::string& backend) const {
  if (!has_key()) return std::nullopt;
  std::vector<cache::StoredPack> all;
  std::vector<StoredKernel> held;
  const ForkSafeLock lock(mutex_);
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

// Removes damaged files, so that sound ones can replace them.
void PersistentPacks::drop_damaged() {
  const ForkSafeLock lock(mutex_);
  std::erase_if(files_, [](const OpenFile& open) {
    if (open.file->is_sound()) return false;
    std::error_code failure;
    std::filesystem::remove(open.path, failure);
    return true;
  });
}

// If the file cannot be written, the next process only has to do the work again.
void PersistentPacks::write_file(const std::filesystem::path& path,
                                 std::span<const cache::StoredPack> packs,
                                 cache::Durability durability) {
  if (!cache::make_private_folder(path.parent_path()).empty()) return;
  cache::sweep(path.parent_path());
  const cache::ReplacedFile replaced =
      cache::write_packs(path, packs, processor_model(), *key_, durability);
  if (!replaced.refusal.empty()) return;
  // The file need not be read now, unless somebody else has replaced it.
  cache::PackFile::Opened written =
      cache::PackFile::open(path, processor_model(), *key_, replaced.stamp);
  if (written.file != nullptr && written.file->is_sound()) add_file(path, std::move(written.file));
}

void PersistentPacks::keep(LoadedModel& model, const PackStore& packs,
                           const std::vector<SavableKernel>& kernels) {
  if (!has_key_or_makes_one()) return;
  drop_damaged();
  const std::vector<cache::StoredPack> wanted = packs_to_store(model, packs, false);
  std::string names;
  for (const cache::StoredPack& pack : wanted) names += pack.key + "\n";
  if (!wanted.empty()) {
    write_file(packs_folder_ / (short_digest(names) + cache::kPacksEnding), wanted,
               cache::Durability::Synced);
  }
  const bool has_new_kernels = keep_kernels(kernels);
  if (wanted.empty() && !has_new_kernels) return;
  cache::sweep(folder_);
  cache::prune(cache::list_kept_files(folder_), cache::kUserLimits);
}

std::vector<StampedFile> PersistentPacks::sound_files() const {
  const ForkSafeLock lock(mutex_);
  std::vector<StampedFile> sound;
  for (const OpenFile& open : files_) {
    if (open.file->stamp() && open.file->is_sound())
      sound.push_back({open.path, *open.file->stamp()});
  }
  if (bundled_ != nullptr && bundle_ && bundled_->is_sound()) sound.push_back(*bundle_);
  return sound;
}

}  // namespace tessera
