// What lies in a user's folder, and what goes first when that is too much.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tessera::cache {

// So much is kept of all models together where nobody says otherwise.
inline constexpr int64_t kMostUserBytes = int64_t{8} << 30;

struct KeptFile {
  std::filesystem::path path;
  int64_t bytes = 0;
  double seconds_saved = 0;  // each time that it is used
  int64_t used_ns = 0;       // the last time, since 1970
};

// The files of `folder` that can be found out again: caches, packs, indices of models. The key and
// the prices that all models share are not among them.
std::vector<KeptFile> list_kept_files(const std::filesystem::path& folder);

// Which of `files` to remove so that the others take `most_bytes` at most: those first that save
// the least seconds a byte, of which a month without use halves the worth.
std::vector<KeptFile> least_valuable(std::vector<KeptFile> files, int64_t most_bytes,
                                     int64_t now_ns);

struct Pruned {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes them. What cannot be removed is passed over.
Pruned prune(const std::filesystem::path& folder, int64_t most_bytes);

}  // namespace tessera::cache
