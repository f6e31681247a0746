// What lies in a folder of found-out things that can be found out again, and what goes first where
// that is too much: what was not used for longest.
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

// So much is kept of all models together where nobody says otherwise.
inline constexpr int64_t kMostUserBytes = int64_t{8} << 30;
inline constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
inline constexpr FolderLimits kUserLimits{
    .files = 10'000, .bytes = kMostUserBytes, .age_ns = 365 * kDayNs};
// Of a folder in which models are bound: one file a model.
inline constexpr FolderLimits kWorkingLimits{
    .files = 256, .bytes = int64_t{1} << 30, .age_ns = 180 * kDayNs};

struct KeptFile {
  std::filesystem::path path;
  int64_t bytes = 0;
  int64_t used_ns = 0;  // the last time, since 1970
};

// The files of the user's `folder` that can be found out again: caches, packs, kernels, indices of
// models. The key and the prices that all models share are not among them.
std::vector<KeptFile> list_kept_files(const std::filesystem::path& folder);

// The caches of `folder` that a bind wrote on its own; not those that save_cache() wrote.
std::vector<KeptFile> list_automatic_files(const std::filesystem::path& folder);

// Which of `files` to remove so that the others keep to the limits.
std::vector<KeptFile> beyond(std::vector<KeptFile> files, const FolderLimits& limits,
                             int64_t now_ns);

struct Pruned {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes them, but for what a process is using (see hold_in_use()). What cannot be removed is
// passed over.
Pruned prune(const std::vector<KeptFile>& files, const FolderLimits& limits);

// Tells that the file was used now. Its contents are what counts, not its times.
void note_use(const std::filesystem::path& file);

// Removes what killed processes left in a folder: files that were being written, locks, keys. What
// a living one is at stays, and so does what is not ours.
void sweep(const std::filesystem::path& folder);

}  // namespace tessera::cache
