// Packed weights in a file that processes map: docs/formats/packs.md has every byte of it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_handle.h"
#include "base/file_stamp.h"
#include "cache/user_key.h"

namespace tessera::cache {

// The bytes of one, under a key that says of which weight, for whom and by which version.
struct StoredPack {
  std::string key;
  std::span<const char> bytes;
};

// The file as bytes. `processor` is that on which the packs were made.
std::string encode_packs(std::span<const StoredPack> packs, const std::string& processor,
                         const UserKey& key);
// The same written to `file`, never all of it in memory. Gives why it could not be, or "".
std::string write_packs(const std::filesystem::path& file, std::span<const StoredPack> packs,
                        const std::string& processor, const UserKey& key);

// Safe from any thread.
class PackFile {
 public:
  // Nothing and a reason where it is damaged, of another processor, or not by this user's key. The
  // packs themselves are looked at when they are asked for; not even then where the file is as
  // `trusted` says: nobody has written to it since it was found to be right.
  struct Opened {
    std::shared_ptr<PackFile> file;
    std::string reason;
  };
  static Opened open(const std::filesystem::path& path, const std::string& processor,
                     const UserKey& key, const std::optional<FileStamp>& trusted);
  // The same from memory.
  static Opened over(std::string bytes, const std::string& place, const std::string& processor,
                     const UserKey& key);

  // The pack of this key and size, aligned to 64 bytes, as long as anybody holds it; nullptr where
  // there is none, or where it is damaged.
  std::shared_ptr<const void> find(const std::string& key, int64_t bytes);

  // The same of any size.
  struct Found {
    std::shared_ptr<const void> bytes;
    int64_t size = 0;
  };
  std::optional<Found> find(const std::string& key);

  std::vector<std::string> keys() const;
  bool has(const std::string& key) const { return entries_.contains(key); }
  // Of the file when it was opened; nullopt for one in memory.
  const std::optional<FileStamp>& stamp() const { return stamp_; }
  // Whether every pack in it is as it was written; looks at all that nobody asked for yet.
  bool is_sound();

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::array<uint8_t, 32> digest = {};
    bool is_checked = false;
    bool is_right = false;
  };
  static Opened read(std::shared_ptr<const char> start, size_t bytes, const std::string& place,
                     const std::string& processor, const UserKey& key);
  bool is_right(Entry& entry);

  std::shared_ptr<const char> start_;
  FileHandle in_use_;  // see hold_in_use()
  std::optional<FileStamp> stamp_;
  std::mutex mutex_;  // of the entries' checks
  std::map<std::string, Entry> entries_;
};

}  // namespace tessera::cache
