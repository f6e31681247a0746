// By what a file is known not to have changed, without reading it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace tessera {

struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = 0;
  int64_t modified_ns = 0;  // since 1970
  int64_t changed_ns = 0;   // the same: of its contents, its name or its rights
  auto operator<=>(const FileStamp&) const = default;
};

template <class Archive>
void transfer(Archive& archive, FileStamp& stamp) {
  auto& [device, inode, bytes, modified_ns, changed_ns] = stamp;
  archive(device, inode, bytes, modified_ns, changed_ns);
}

// A file, and its stamp when it was opened.
struct StampedFile {
  std::filesystem::path path;
  FileStamp stamp;
  bool operator==(const StampedFile&) const = default;
};

// nullopt where there is no such regular file. Links are followed.
std::optional<FileStamp> stamp_of(const std::filesystem::path& file);
// Of an open file.
std::optional<FileStamp> stamp_of(int descriptor);

// Throws DeviceFailed, naming the file, where one of them is not there any more or has another
// stamp.
void check_unchanged(std::span<const StampedFile> files);
// Throws that error for `file`; `found` says what is there now.
[[noreturn]] void fail_changed(const std::filesystem::path& file, const std::string& found);

// Nanoseconds since 1970.
int64_t system_time_ns();

// Whether at `time_ns` the newest change was so long ago that another one would have had another
// time: clocks of file systems tick slowly, and what is written to twice within a tick has one
// stamp.
bool is_settled(const FileStamp& stamp, int64_t time_ns);

}  // namespace tessera
