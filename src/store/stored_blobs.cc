#include "store/stored_blobs.h"

#include <system_error>

#include "base/processor.h"
#include "cache/pack_file.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "store/persistent_packs.h"

namespace tessera {
namespace {

std::string pack_key(const std::string& key) { return "blob;" + key; }

// Beside compiled kernels, whose limits then hold for blobs too.
std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& key) {
  return folder / "kernels" / short_digest(pack_key(key)) / "kernel.packs";
}

}  // namespace

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
  const std::optional<cache::PackFile::Found> found = opened.file->find(pack_key(key));
  if (!found) return std::nullopt;
  cache::note_use(path.parent_path());
  return std::string(static_cast<const char*>(found->bytes.get()),
                     static_cast<size_t>(found->size));
}

void keep_blobs(const std::filesystem::path& folder,
                const std::map<std::string, std::string>& blobs) {
  if (folder.empty() || blobs.empty()) return;
  const std::optional<cache::UserKey> user = cache::make_key(folder);
  if (!user) return;
  for (const auto& [key, bytes] : blobs) {
    const std::filesystem::path path = file_of(folder, key);
    if (!cache::make_private_folder(path.parent_path()).empty()) continue;
    cache::sweep(path.parent_path());
    const std::string name = pack_key(key);
    const cache::StoredPack one{name, bytes};
    cache::write_packs(path, {&one, 1}, processor_model(), *user);
  }
  cache::prune(cache::list_kept_files(folder), cache::kUserLimits);
}

}  // namespace tessera
