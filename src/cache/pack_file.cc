#include "cache/pack_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file_handle.h"
#include "cache/digest.h"
#include "cache/stored_fields.h"
#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

constexpr std::string_view kMagic("TESPACK\x1a", 8);
constexpr uint32_t kVersion = 3;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kHeaderBytesUsed = 24;
constexpr size_t kAlignment = 64;
constexpr size_t kMinEntryBytes = 4 + 8 + 8 + 32;
// Each pack begins at a page boundary, so that reading one touches no page of another.
constexpr size_t kPageBytes = 4096;
constexpr size_t kWorthBringingBytes = 4 * kPageBytes;

template <class Bytes>
std::span<const char> chars(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

size_t align(size_t offset, size_t bytes) {
  const size_t unit = bytes < kPageBytes ? kAlignment : kPageBytes;
  return (offset + unit - 1) / unit * unit;
}

// A pack is read completely soon after it is requested, so all its pages are mapped at once, which
// is much faster than page faults one by one. If the system does not support that, pages are mapped
// on first access.
void prefault_pages([[maybe_unused]] const char* start, [[maybe_unused]] size_t offset,
                    [[maybe_unused]] size_t bytes) {
#ifdef MADV_POPULATE_READ
  if (bytes < kWorthBringingBytes) return;
  const size_t begin = offset / kPageBytes * kPageBytes;
  ::madvise(const_cast<char*>(start) + begin, offset + bytes - begin, MADV_POPULATE_READ);
#endif
}

struct Head {
  std::string bytes;            // header and table
  std::vector<size_t> offsets;  // by pack
};

Mac mac_of(std::string_view header, std::span<const char> table, const UserKey& key) {
  FieldWriter writer;
  writer.text("tessera packs");
  writer.raw(header.substr(0, kHeaderBytesUsed));
  writer.raw(table);
  return key.authenticate(writer.bytes);
}

Head head_of(std::span<const StoredPack> packs, const std::string& processor, const UserKey& key) {
  size_t table_bytes = 4 + processor.size() + 4;
  for (const StoredPack& pack : packs) table_bytes += kMinEntryBytes + pack.key.size();
  Head head;
  FieldWriter table;
  table.text(processor);
  table.number(static_cast<uint32_t>(packs.size()));
  size_t end = kHeaderBytes + sizeof(Mac) + table_bytes;
  for (const StoredPack& pack : packs) {
    end = align(end, pack.bytes.size());
    head.offsets.push_back(end);
    table.text(pack.key);
    table.number(uint64_t{end});
    table.number(uint64_t{pack.bytes.size()});
    table.raw(chars(digest_of(pack.bytes)));
    end += pack.bytes.size();
  }
  FieldWriter header;
  header.bytes = kMagic;
  header.number(kVersion);
  header.number(static_cast<uint32_t>(table_bytes));
  header.number(uint64_t{end});
  header.bytes.resize(kHeaderBytes, '\0');
  const Mac mac = mac_of(header.bytes, table.bytes, key);
  header.raw(chars(mac));
  head.bytes = std::move(header.bytes) + table.bytes;
  return head;
}

// Passes the file part by part to `write`.
template <class Write>
void write_all(std::span<const StoredPack> packs, const Head& head, const Write& write) {
  write(std::string_view(head.bytes));
  size_t end = head.bytes.size();
  for (size_t index = 0; index < packs.size(); ++index) {
    write(std::string_view(std::string(head.offsets[index] - end, '\0')));
    write(std::string_view(packs[index].bytes.data(), packs[index].bytes.size()));
    end = head.offsets[index] + packs[index].bytes.size();
  }
}

}  // namespace

std::string encode_packs(std::span<const StoredPack> packs, const std::string& processor,
                         const UserKey& key) {
  std::string bytes;
  write_all(packs, head_of(packs, processor, key), [&](std::string_view part) { bytes += part; });
  return bytes;
}

ReplacedFile write_packs(const std::filesystem::path& file, std::span<const StoredPack> packs,
                         const std::string& processor, const UserKey& key, Durability durability) {
  const Head head = head_of(packs, processor, key);
  const auto write = [&](int descriptor) {
    std::string reason;
    write_all(packs, head, [&](std::string_view part) {
      if (reason.empty()) reason = write_bytes(descriptor, part);
    });
    return reason;
  };
  return replace_file_by(file, write, durability);
}

PackFile::Opened PackFile::open(const std::filesystem::path& path, const std::string& processor,
                                const UserKey& key, const std::optional<FileStamp>& trusted) {
  const std::string location = "packs '" + path.string() + "'";
  const auto [handle, refusal] = open_stored_file(path);
  if (!handle.is_open()) {
    return {nullptr, location + " are not used: " + (refusal.empty() ? "they are gone" : refusal)};
  }
  const std::optional<FileStamp> stamp = stamp_of(handle.get());
  if (!stamp || stamp->bytes <= 0) return {nullptr, location + " are damaged: the file is empty"};
  const auto bytes = static_cast<size_t>(stamp->bytes);
  void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, handle.get(), 0);
  if (address == MAP_FAILED) return {nullptr, location + ": " + std::strerror(errno)};
  const std::shared_ptr<const char> start(
      static_cast<const char*>(address),
      [bytes](const char* held) { ::munmap(const_cast<char*>(held), bytes); });
  Opened opened = read(start, bytes, location, processor, key);
  if (opened.file == nullptr) return opened;
  opened.file->stamp_ = stamp;
  opened.file->in_use_ = hold_in_use(path);
  if (trusted != stamp) return opened;
  for (auto& [name, entry] : opened.file->entries_) entry.is_checked = entry.is_right = true;
  return opened;
}

PackFile::Opened PackFile::over(std::string bytes, const std::string& location,
                                const std::string& processor, const UserKey& key) {
  constexpr auto kAligned = std::align_val_t{kAlignment};
  const size_t size = bytes.size();
  auto* const memory = static_cast<char*>(::operator new(std::max<size_t>(size, 1), kAligned));
  std::copy(bytes.begin(), bytes.end(), memory);
  const std::shared_ptr<const char> start(
      memory, [](const char* held) { ::operator delete(const_cast<char*>(held), kAligned); });
  return read(start, size, location, processor, key);
}

PackFile::Opened PackFile::read(std::shared_ptr<const char> start, size_t bytes,
                                const std::string& location, const std::string& processor,
                                const UserKey& key) {
  const std::span<const char> all(start.get(), bytes);
  const auto file = std::make_shared<PackFile>();
  file->start_ = std::move(start);
  try {
    FieldReader header(all, location);
    const std::span<const char> magic = header.raw(kMagic.size(), "a header");
    const auto version = header.number<uint32_t>("a header");
    const auto table_bytes = header.number<uint32_t>("a header");
    const auto file_bytes = header.number<uint64_t>("a header");
    header.raw(kHeaderBytes - kHeaderBytesUsed, "a header");
    const std::span<const char> mac = header.raw(sizeof(Mac), "a code");
    if (!std::equal(magic.begin(), magic.end(), kMagic.begin(), kMagic.end()) ||
        version != kVersion || file_bytes != bytes) {
      fail_damaged(location, "expected packs of version " + std::to_string(kVersion) +
                                 ", whole, found something else");
    }
    const std::span<const char> table = header.raw(table_bytes, "a table");
    Mac stored = {};
    std::memcpy(stored.data(), mac.data(), mac.size());
    if (!is_equal(mac_of({all.data(), kHeaderBytesUsed}, table, key), stored)) {
      return {nullptr, location + " are not used: they are damaged, or another user's"};
    }
    FieldReader reader(table, location);
    const std::string made_on = reader.text("a processor");
    if (made_on != processor) {
      return {nullptr, location + " are not used: processor: " + made_on + " in the file, " +
                           processor + " now"};
    }
    for (size_t left = reader.count("packs", kMinEntryBytes); left > 0; --left) {
      std::string name = reader.text("a key");
      Entry entry{.offset = reader.number<uint64_t>("an offset"),
                  .bytes = reader.number<uint64_t>("a length")};
      const std::span<const char> digest = reader.raw(entry.digest.size(), "a digest");
      std::memcpy(entry.digest.data(), digest.data(), digest.size());
      const bool is_inside = entry.offset <= bytes && entry.bytes <= bytes - entry.offset &&
                             entry.offset % kAlignment == 0;
      if (!is_inside) fail_damaged(location, "expected each pack inside the file");
      file->entries_.emplace(std::move(name), entry);
    }
    if (!reader.is_at_end()) fail_damaged(location, "expected its table to end with the last pack");
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
  return {file, ""};
}

bool PackFile::is_right(Entry& entry) {
  if (!entry.is_checked) {
    entry.is_right = digest_of({start_.get() + entry.offset, entry.bytes}) == entry.digest;
    entry.is_checked = true;
  }
  return entry.is_right;
}

std::optional<PackFile::Found> PackFile::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = found->second;
  {
    const std::lock_guard lock(mutex_);
    if (!is_right(found->second)) return std::nullopt;
  }
  prefault_pages(start_.get(), entry.offset, entry.bytes);
  return Found{{start_, start_.get() + entry.offset}, static_cast<int64_t>(entry.bytes)};
}

std::shared_ptr<const void> PackFile::find(const std::string& key, int64_t bytes) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end() || entry->second.bytes != static_cast<uint64_t>(bytes)) {
    return nullptr;
  }
  const std::optional<Found> found = find(key);
  return found ? found->bytes : nullptr;
}

std::vector<std::string> PackFile::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

bool PackFile::is_sound() {
  const std::lock_guard lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](auto& named) { return is_right(named.second); });
}

}  // namespace tessera::cache
