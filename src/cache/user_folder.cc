#include "cache/user_folder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

#include "base/file_stamp.h"
#include "cache/cache_file.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

// What reading and rewriting a small model takes.
constexpr double kIndexSeconds = 0.02;
// Packing reads and writes each byte; less than half of what memory does.
constexpr double kPackedBytesPerSecond = 2e9;
constexpr double kHalfLifeSeconds = 30.0 * 24 * 3600;

double seconds_of_cache(const std::filesystem::path& path) {
  const FileText text = read_stored_file(path, kMostFileBytes);
  if (!text.bytes) return 0;
  try {
    double seconds = 0;
    for (const Section& section : decode(*text.bytes, nullptr, path.string()).sections) {
      seconds += section.seconds;
    }
    return seconds;
  } catch (const Error&) {
    return 0;
  }
}

void add(const std::filesystem::path& path, double seconds, std::vector<KeptFile>& files) {
  const std::optional<FileStamp> stamp = stamp_of(path);
  if (!stamp) return;
  files.push_back({path, stamp->bytes, seconds, stamp->modified_ns});
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// When the packs of one model were used last is known of their folder: files that are mapped keep
// their times, by which they are known not to have changed.
void add_packs(const std::filesystem::path& folder, std::vector<KeptFile>& files) {
  std::error_code failure;
  const auto used = std::filesystem::last_write_time(folder, failure);
  if (failure) return;
  const auto age = std::filesystem::file_time_type::clock::now() - used;
  const int64_t used_ns =
      system_time_ns() - std::chrono::duration_cast<std::chrono::nanoseconds>(age).count();
  for (const std::filesystem::path& path : entries_of(folder)) {
    const std::optional<FileStamp> stamp = stamp_of(path);
    if (path.extension() != ".packs" || !stamp) continue;
    files.push_back({.path = path,
                     .bytes = stamp->bytes,
                     .seconds_saved = static_cast<double>(stamp->bytes) / kPackedBytesPerSecond,
                     .used_ns = std::max(stamp->modified_ns, used_ns)});
  }
}

}  // namespace

std::vector<KeptFile> list_kept_files(const std::filesystem::path& folder) {
  std::vector<KeptFile> files;
  for (const std::filesystem::path& path : list_folder(folder)) {
    add(path, seconds_of_cache(path), files);
  }
  for (const std::filesystem::path& path : entries_of(folder / "models")) {
    if (path.extension() == ".model") add(path, kIndexSeconds, files);
  }
  for (const std::filesystem::path& model : entries_of(folder / "packs")) add_packs(model, files);
  return files;
}

std::vector<KeptFile> least_valuable(std::vector<KeptFile> files, int64_t most_bytes,
                                     int64_t now_ns) {
  int64_t bytes = 0;
  for (const KeptFile& file : files) bytes += file.bytes;
  const auto worth = [&](const KeptFile& file) {
    const double age = static_cast<double>(std::max<int64_t>(0, now_ns - file.used_ns)) * 1e-9;
    return file.seconds_saved / static_cast<double>(std::max<int64_t>(1, file.bytes)) *
           std::exp2(-age / kHalfLifeSeconds);
  };
  std::stable_sort(files.begin(), files.end(), [&](const KeptFile& left, const KeptFile& right) {
    return worth(left) < worth(right);
  });
  size_t count = 0;
  while (count < files.size() && bytes > most_bytes) bytes -= files[count++].bytes;
  files.resize(count);
  return files;
}

Pruned prune(const std::filesystem::path& folder, int64_t most_bytes) {
  Pruned pruned;
  for (const KeptFile& file :
       least_valuable(list_kept_files(folder), most_bytes, system_time_ns())) {
    std::error_code failure;
    if (!std::filesystem::remove(file.path, failure) || failure) continue;
    ++pruned.files;
    pruned.bytes += file.bytes;
    // Where it was the last one of its model's.
    if (file.path.extension() == ".packs")
      std::filesystem::remove(file.path.parent_path(), failure);
  }
  return pruned;
}

}  // namespace tessera::cache
