#include "store/stored_blobs.h"

#include <system_error>
#include <utility>

#include "base/machine/processor.h"
#include "base/threads/fork.h"
#include "cache/file_lock.h"
#include "cache/fingerprint.h"
#include "cache/pack_file.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "store/persistent_packs.h"

namespace tessera {
namespace {

// Beside compiled kernels, whose limits then hold for blobs too.
std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& key) {
  return folder / "kernels" / short_digest(blob_pack_key(key)) / "kernel.packs";
}

std::optional<std::string> find_in(cache::PackFile& packs, const std::string& key) {
  const std::optional<cache::PackFile::Found> found = packs.find(blob_pack_key(key));
  if (!found) return std::nullopt;
  return std::string(static_cast<const char*>(found->bytes.get()),
                     static_cast<size_t>(found->size));
}

}  // namespace

std::string blob_pack_key(const std::string& key) { return "blob;" + key; }

std::optional<std::string> find_blob(const std::filesystem::path& folder, const std::string& key) {
  if (folder.empty()) return std::nullopt;
  const std::filesystem::path path = file_of(folder, key);
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return std::nullopt;
  const std::optional<cache::UserKey> user = cache::find_key(folder);
  if (!user) return std::nullopt;
  const cache::PackFile::Opened opened =
      cache::PackFile::open(path, processor_model(), *user, std::nullopt);
  if (opened.file == nullptr) return std::nullopt;
  std::optional<std::string> found = find_in(*opened.file, key);
  if (found) cache::note_use(path.parent_path());
  return found;
}

bool keep_blob(const std::filesystem::path& folder, const std::string& key,
               const std::string& bytes) {
  if (folder.empty()) return false;
  const std::optional<cache::UserKey> user = cache::make_key(folder);
  const std::filesystem::path path = file_of(folder, key);
  if (!user || !cache::make_private_folder(path.parent_path()).empty()) return false;
  cache::sweep(path.parent_path());
  const std::string name = blob_pack_key(key);
  const cache::StoredPack one{name, bytes};
  return cache::write_packs(path, {&one, 1}, processor_model(), *user, cache::Durability::Unsynced)
      .refusal.empty();
}

std::shared_ptr<const void> StoredBlobs::permit_storing() {
  ++permits_;
  return {static_cast<const void*>(this), [this](const void*) { --permits_; }};
}

std::optional<std::string> StoredBlobs::find(const std::string& key) const {
  std::optional<std::string> found = find_blob(find_folder_(), key);
  const ForkSafeLock lock(mutex_);
  for (const std::weak_ptr<cache::PackFile>& source : sources_) {
    const std::shared_ptr<cache::PackFile> packs = source.lock();
    if (!found && packs != nullptr) found = find_in(*packs, key);
  }
  return found;
}

void StoredBlobs::add_source(const std::shared_ptr<cache::PackFile>& packs) {
  const ForkSafeLock lock(mutex_);
  std::erase_if(sources_, [](const auto& source) { return source.expired(); });
  sources_.push_back(packs);
}

bool StoredBlobs::keep_new(const std::string& key, const std::string& bytes) {
  if (permits_ == 0 || !keep_blob(find_folder_(), key, bytes)) return false;
  has_grown_ = true;
  return true;
}

// The lock is in the user's folder, from which sweep() removes it if its holder was killed.
BlobClaim StoredBlobs::try_claim(const std::string& key) const {
  BlobClaim of_nothing = std::make_shared<const char>();
  const std::filesystem::path folder = find_folder_();
  if (permits_ == 0 || folder.empty()) return of_nothing;
  if (!cache::make_private_folder(folder).empty()) return of_nothing;
  cache::FileLock::Attempt attempt =
      cache::FileLock::try_lock(folder / ("." + cache::digest_text(blob_pack_key(key)) + ".lock"));
  if (attempt.lock) return std::make_shared<const cache::FileLock>(*std::move(attempt.lock));
  return attempt.holder.empty() ? of_nothing : nullptr;
}

void StoredBlobs::keep(const std::map<std::string, std::string>& blobs) {
  const std::filesystem::path folder = find_folder_();
  if (folder.empty()) return;
  for (const auto& [key, bytes] : blobs) has_grown_ = keep_blob(folder, key, bytes) || has_grown_;
  if (!has_grown_.exchange(false)) return;
  cache::sweep(folder);
  cache::prune(cache::list_kept_files(folder), cache::kUserLimits);
}

BlobKeeper keeper_of(const std::shared_ptr<StoredBlobs>& blobs) {
  return {.find = [blobs](const std::string& key) { return blobs->find(key); },
          .keep = [blobs](const std::string& key,
                          const std::string& bytes) { return blobs->keep_new(key, bytes); },
          .try_claim = [blobs](const std::string& key) { return blobs->try_claim(key); }};
}

}  // namespace tessera
