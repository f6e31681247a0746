// Limits the size of the user's cache folder: evicts the least recently used files. Everything
// evicted can be computed again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

namespace tessera::cache {

struct FolderLimits {
  int64_t files = std::numeric_limits<int64_t>::max();
  int64_t bytes = std::numeric_limits<int64_t>::max();
  int64_t age_ns = std::numeric_limits<int64_t>::max();  // since the last use
};

// The default limit for the files of all models together.
inline constexpr int64_t kMaxUserBytes = int64_t{8} << 30;
inline constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
inline constexpr FolderLimits kUserLimits{
    .files = 10'000, .bytes = kMaxUserBytes, .age_ns = 365 * kDayNs};
// The limits for a folder in which models are bound, with one file per model.
inline constexpr FolderLimits kWorkingLimits{
    .files = 256, .bytes = int64_t{1} << 30, .age_ns = 180 * kDayNs};

struct KeptFile {
  std::filesystem::path path;
  int64_t bytes = 0;
  int64_t used_ns = 0;  // time of the last use, since 1970
};

// The files of the user's `folder` that can be computed again: caches, packs, kernels, indices of
// models. Excludes the key and the prices that all models share.
std::vector<KeptFile> list_kept_files(const std::filesystem::path& folder);

// The caches of `folder` that binds saved automatically; excludes those of save_cache().
std::vector<KeptFile> list_automatic_files(const std::filesystem::path& folder);

// The files to remove so that the others stay within the limits.
std::vector<KeptFile> beyond(std::vector<KeptFile> files, const FolderLimits& limits,
                             int64_t now_ns);

struct Pruned {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes those files, except ones that a process is using (see hold_in_use()). Skips files that
// cannot be removed.
Pruned prune(const std::vector<KeptFile>& files, const FolderLimits& limits);

// Records that the file was used now, by its time stamp; its contents stay.
void note_use(const std::filesystem::path& file);

// Removes leftovers of killed processes: partly written files, locks, keys. Keeps files that a
// living process uses and files of others.
void sweep(const std::filesystem::path& folder);

}  // namespace tessera::cache
