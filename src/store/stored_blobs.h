// Keeps the blobs of plug-ins (tessera_host::put_blob) in the user's folder for later processes and
// other models: for example programs that a library compiled. A plug-in makes again what is missing
// or damaged.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/host.h"
#include "cache/pack_file.h"

namespace tessera {

// The blob that an earlier process of this user stored in `folder` under `key`; nullopt if there is
// none that this user's key authenticates. `folder` "" has none. Thread-safe.
std::optional<std::string> find_blob(const std::filesystem::path& folder, const std::string& key);

// Stores one blob, without regard to the limits of the folder. Returns false if that fails: then
// later processes only have to make it again. Thread-safe; several processes may store at the same
// time.
bool keep_blob(const std::filesystem::path& folder, const std::string& key,
               const std::string& bytes);

// The name of a blob among packs.
std::string blob_pack_key(const std::string& key);

// The store of one process, for HostServices. Thread-safe.
class StoredBlobs {
 public:
  using FindFolder = std::function<std::filesystem::path()>;  // "": nothing is kept

  explicit StoredBlobs(FindFolder find_folder) : find_folder_(std::move(find_folder)) {}

  // While anybody holds a permit, new blobs are stored at once, and claims hold for all processes
  // of this user. Otherwise nothing is written.
  std::shared_ptr<const void> permit_storing();

  // See BlobKeeper.
  std::optional<std::string> find(const std::string& key) const;
  bool keep_new(const std::string& key, const std::string& bytes);
  BlobClaim try_claim(const std::string& key) const;

  // Looks for blobs in `packs`, too, as long as anybody else holds them.
  void add_source(const std::shared_ptr<cache::PackFile>& packs);

  // Stores also these blobs, and removes the least recently used files beyond the limits of the
  // folder.
  void keep(const std::map<std::string, std::string>& blobs);

 private:
  FindFolder find_folder_;
  mutable std::mutex mutex_;  // protects the next member
  std::vector<std::weak_ptr<cache::PackFile>> sources_;
  std::atomic<int> permits_ = 0;
  std::atomic<bool> has_grown_ = false;  // since the last keep()
};

// The store as HostServices uses it; the functions keep it alive.
BlobKeeper keeper_of(const std::shared_ptr<StoredBlobs>& blobs);

}  // namespace tessera
