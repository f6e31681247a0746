// Memory-mapped files of packed weights; docs/formats/packs.md documents every byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file_handle.h"
#include "base/files/file_stamp.h"
#include "cache/digest.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"

namespace tessera::cache {

// The bytes of a pack. The key identifies the weight, the consumer and the library version.
struct StoredPack {
  std::string key;
  std::span<const char> bytes;
};

// The bytes of a file, as a list of views in order: views of the packs, without copies, and views
// of texts that this object owns.
class PackPieces {
 public:
  // `processor` is the one on which the packs were made. The packs must outlive the pieces.
  PackPieces(std::span<const StoredPack> packs, const std::string& processor, const UserKey& key);

  const std::vector<std::string_view>& pieces() const { return pieces_; }

 private:
  std::shared_ptr<const std::string> head_;
  std::vector<std::string_view> pieces_;
};

// Returns the bytes of PackPieces in one string.
std::string encode_packs(std::span<const StoredPack> packs, const std::string& processor,
                         const UserKey& key);
// Writes the bytes of PackPieces to `file`, pack by pack, so that memory need not hold them all.
ReplacedFile write_packs(const std::filesystem::path& file, std::span<const StoredPack> packs,
                         const std::string& processor, const UserKey& key,
                         Durability durability = Durability::Synced);

// Thread-safe.
class PackFile {
 public:
  // No file and a reason if it is damaged, made on another processor, or not authenticated by this
  // user's key. Each pack is verified when it is requested, unless the file's stamp equals
  // `trusted`: then nobody has written to it since it was verified.
  struct Opened {
    std::shared_ptr<PackFile> file;
    std::string reason;
    // Another version of the library wrote it and may still use it; this is no error.
    bool is_of_other_version = false;
  };
  static Opened open(const std::filesystem::path& path, const std::string& processor,
                     const UserKey& key, const std::optional<FileStamp>& trusted);
  // Same as open(), for bytes that begin at a multiple of 64, that `start` keeps alive, and that do
  // not change. With `is_verified`, each pack was verified before.
  static Opened within(std::shared_ptr<const char> start, size_t bytes, const std::string& location,
                       const std::string& processor, const UserKey& key, bool is_verified);
  // Same as open(), for a file in memory.
  static Opened over(std::string bytes, const std::string& location, const std::string& processor,
                     const UserKey& key);

  // The pack with this key and size, aligned to 64 bytes, valid while anybody holds it; nullptr if
  // it is missing or damaged.
  std::shared_ptr<const void> find(const std::string& key, int64_t bytes);

  // A pack that was found by its key, with its size.
  struct Found {
    std::shared_ptr<const void> bytes;
    int64_t size = 0;
  };
  std::optional<Found> find(const std::string& key);

  // Whether the file has the pack, and find() has found it damaged.
  bool is_damaged(const std::string& key) const;

  std::vector<std::string> keys() const;
  bool has(const std::string& key) const { return entries_.contains(key); }
  // The stamp when the file was opened; nullopt for a file in memory.
  const std::optional<FileStamp>& stamp() const { return stamp_; }
  // Whether every pack is intact; verifies those that were not requested yet.
  bool is_sound();

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    OneTimeCode code = {};
    Digest code_key = {};
    enum class State : uint8_t { Unknown, Right, Wrong };
    std::atomic<State> state = State::Unknown;
  };
  bool is_right(Entry& entry);

  std::shared_ptr<const char> start_;
  FileHandle in_use_;  // see hold_in_use()
  std::optional<FileStamp> stamp_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tessera::cache
