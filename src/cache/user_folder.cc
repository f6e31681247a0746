#include "cache/user_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/files/file_handle.h"
#include "base/files/file_stamp.h"
#include "cache/cache_file.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

// Creating a key takes moments; older temporary files are leftovers.
constexpr int64_t kOldKeyNs = int64_t{60} * 1'000'000'000;

void add(const std::filesystem::path& path, std::vector<KeptFile>& files) {
  const std::optional<FileStamp> stamp = stamp_of(path);
  if (stamp) files.push_back({path, stamp->bytes, stamp->modified_ns});
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

// The folder of packs stores the time of their last use. Mapped files must keep their own times,
// because these show that the files have not changed.
void add_packs(const std::filesystem::path& folder, std::vector<KeptFile>& files) {
  std::error_code failure;
  const auto used = std::filesystem::last_write_time(folder, failure);
  if (failure) return;
  const auto age = std::filesystem::file_time_type::clock::now() - used;
  const int64_t used_ns =
      system_time_ns() - std::chrono::duration_cast<std::chrono::nanoseconds>(age).count();
  for (const std::filesystem::path& path : entries_of(folder)) {
    const std::optional<FileStamp> stamp = stamp_of(path);
    if (path.extension() != kPacksEnding || !stamp) continue;
    files.push_back({path, stamp->bytes, std::max(stamp->modified_ns, used_ns)});
  }
}

// Names of temporary files and locks of ours: ".<name>.new", ".<40 digits>.lock".
bool is_staged_name(std::string_view name) {
  if (!name.starts_with('.') || name.size() < 2) return false;
  if (name.ends_with(".lock")) {
    const std::string_view digits = name.substr(1, name.size() - 6);
    return digits.size() == 40 &&
           digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  }
  if (!name.ends_with(".new")) return false;
  const std::string_view of = name.substr(1, name.size() - 5);
  return of == "costs" || of.ends_with(".cache") || of.ends_with(".model") ||
         of.ends_with(kPacksEnding);
}

bool is_key_in_the_making(std::string_view name) {
  return name.starts_with("key.") && name.size() == std::string_view("key.XXXXXX").size();
}

// Removes the file if nobody has it locked and it belongs to us.
void remove_if_left(const std::filesystem::path& path, int64_t min_age_ns) {
  const FileHandle handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (!handle.is_open() || ::fstat(handle.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::flock(handle.get(), LOCK_EX | LOCK_NB) != 0) return;
  const std::optional<FileStamp> stamp = stamp_of(handle.get());
  if (!stamp || system_time_ns() - stamp->modified_ns < min_age_ns) return;
  // Its previous holder may have renamed it to its final name.
  if (stamp_of(path) == stamp) ::unlink(path.c_str());
}

}  // namespace

std::vector<KeptFile> list_kept_files(const std::filesystem::path& folder) {
  std::vector<KeptFile> files;
  for (const std::filesystem::path& path : list_folder(folder)) add(path, files);
  for (const std::filesystem::path& path : entries_of(folder / "models")) {
    if (path.extension() == ".model") add(path, files);
  }
  for (const char* kind : {"packs", "kernels"}) {
    for (const std::filesystem::path& of : entries_of(folder / kind)) add_packs(of, files);
  }
  return files;
}

std::vector<KeptFile> list_automatic_files(const std::filesystem::path& folder) {
  std::vector<KeptFile> files;
  for (const std::filesystem::path& path : list_folder(folder)) {
    const FileText text = read_stored_file(path, kMaxFileBytes);
    if (text.bytes && is_automatic(*text.bytes)) add(path, files);
  }
  return files;
}

std::vector<KeptFile> beyond(std::vector<KeptFile> files, const FolderLimits& limits,
                             int64_t now_ns) {
  std::ranges::stable_sort(files, {}, &KeptFile::used_ns);
  int64_t bytes = 0;
  for (const KeptFile& file : files) bytes += file.bytes;
  const auto total = static_cast<int64_t>(files.size());
  int64_t count = 0;
  while (count < total) {
    const KeptFile& oldest = files[static_cast<size_t>(count)];
    const bool is_too_much = total - count > limits.files || bytes > limits.bytes;
    const bool is_too_old = now_ns - oldest.used_ns > limits.age_ns;
    if (!is_too_much && !is_too_old) break;
    bytes -= oldest.bytes;
    ++count;
  }
  files.resize(static_cast<size_t>(count));
  return files;
}

Pruned prune(const std::vector<KeptFile>& files, const FolderLimits& limits) {
  Pruned pruned;
  for (const KeptFile& file : beyond(files, limits, system_time_ns())) {
    if (is_in_use(file.path)) continue;
    std::error_code failure;
    if (!std::filesystem::remove(file.path, failure) || failure) continue;
    ++pruned.files;
    pruned.bytes += file.bytes;
    // Removes the folder if this was its last file.
    if (file.path.extension() == kPacksEnding) ::rmdir(file.path.parent_path().c_str());
  }
  return pruned;
}

void note_use(const std::filesystem::path& file) {
  ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
}

void sweep(const std::filesystem::path& folder) {
  for (const std::filesystem::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    if (is_staged_name(name)) remove_if_left(path, 0);
    if (is_key_in_the_making(name)) remove_if_left(path, kOldKeyNs);
  }
}

}  // namespace tessera::cache
