// Metadata that tells whether a file has changed, without reading the file.
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
  int64_t changed_ns = 0;   // since 1970; last change of contents, name or permissions
  auto operator<=>(const FileStamp&) const = default;
};

template <class Archive>
void transfer(Archive& archive, FileStamp& stamp) {
  auto& [device, inode, bytes, modified_ns, changed_ns] = stamp;
  archive(device, inode, bytes, modified_ns, changed_ns);
}

// A file and its stamp at the time it was opened.
struct StampedFile {
  std::filesystem::path path;
  FileStamp stamp;
  bool operator==(const StampedFile&) const = default;
};

// nullopt if there is no such regular file. Follows links.
std::optional<FileStamp> stamp_of(const std::filesystem::path& file);
// Returns the stamp of an open file.
std::optional<FileStamp> stamp_of(int descriptor);

// Throws DeviceFailed, naming the file, if a file is missing or has another stamp.
void check_unchanged(std::span<const StampedFile> files);
// Throws that error for `file`; `found` describes the current state.
[[noreturn]] void fail_changed(const std::filesystem::path& file, const std::string& found);

// Whether others have an open file open for writing. Better answers come first.
enum class ReadLease : uint8_t {
  Granted,      // nobody has it open for writing
  Unavailable,  // unknown: the file belongs to another user, or the file system has no leases
  Writer,       // somebody has it open or mapped for writing, or asked to since Granted
};

// Takes a read lease (fcntl(2), F_SETLEASE) on `descriptor`, which is open for reading only.
// A writer that opens the file then waits until the lease is released or the descriptor is closed,
// but no longer than /proc/sys/fs/lease-break-time. This process receives no signal.
ReadLease take_read_lease(int descriptor);
// Releases the lease of take_read_lease(). Returns `lease`, or Writer if somebody asked to write
// meanwhile.
ReadLease release_read_lease(int descriptor, ReadLease lease);

// Nanoseconds since 1970.
int64_t system_time_ns();

// Whether, at `time_ns`, the newest change is so old that a further change would have another time
// stamp. The clocks of file systems are coarse: two writes within one tick have the same stamp.
bool is_reliable(const FileStamp& stamp, int64_t time_ns);

}  // namespace tessera
