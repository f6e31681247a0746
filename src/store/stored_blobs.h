// Keeps the blobs of plug-ins (tessera_host::put_blob) in the user's folder for later processes and
// other models: for example programs that a library compiled. A plug-in makes again what is missing
// or damaged.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tessera {

// The blob that an earlier process of this user stored in `folder` under `key`; nullopt if there is
// none that this user's key authenticates. `folder` "" has none. Thread-safe.
std::optional<std::string> find_blob(const std::filesystem::path& folder, const std::string& key);

// Stores blobs by key. If that fails, later processes only have to make them again. Thread-safe;
// several processes may store at the same time.
void keep_blobs(const std::filesystem::path& folder,
                const std::map<std::string, std::string>& blobs);

}  // namespace tessera
