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

// What the system says about writers of an open file, the better answer first.
enum class ReadLease : uint8_t {
  Granted,      // nobody has it open for writing
  Unavailable,  // it cannot tell: the file is another user's, or the file system has no leases
  Writer,       // somebody has it open for writing, or maps it so, or asked to since Granted
};

// Takes a read lease (fcntl(2), F_SETLEASE) on `descriptor`, which is open for reading only.
// Whoever wants to open the file for writing waits until it is released or the file closed, at most
// as long as /proc/sys/fs/lease-break-time says. No signal is sent to this process.
ReadLease take_read_lease(int descriptor);
// Releases what take_read_lease() gave: `lease`, or Writer where one came in between.
ReadLease release_read_lease(int descriptor, ReadLease lease);

// Nanoseconds since 1970.
int64_t system_time_ns();

// Whether at `time_ns` the newest change was so long ago that another one would have had another
// time: clocks of file systems tick slowly, and what is written to twice within a tick has one
// stamp.
bool is_settled(const FileStamp& stamp, int64_t time_ns);

}  // namespace tessera
