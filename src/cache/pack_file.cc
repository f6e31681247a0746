#include "cache/pack_file.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/errors/check.h"
#include "base/files/file_handle.h"
#include "cache/digest.h"
#include "cache/stored_fields.h"
#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

constexpr std::string_view kPackMagic("TESPACK\x1a", 8);
constexpr uint32_t kPackVersion = 4;
constexpr size_t kPackHeaderBytes = 64;
constexpr size_t kPackHeaderBytesUsed = 40;
constexpr size_t kPackAlignment = 64;
constexpr size_t kMinEntryBytes = 4 + 8 + 8 + sizeof(OneTimeCode);
// Each pack begins at a page boundary, so that reading one touches no page of another.
constexpr size_t kPackPageBytes = 4096;
constexpr size_t kWorthBringingBytes = 4 * kPackPageBytes;

template <class Bytes>
std::span<const char> chars(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

size_t align(size_t offset, size_t bytes) {
  const size_t unit = bytes < kPackPageBytes ? kPackAlignment : kPackPageBytes;
  return (offset + unit - 1) / unit * unit;
}

// A pack is read completely soon after it is requested, so all its pages are mapped at once, which
// is much faster than page faults one by one. If the system does not support that, pages are mapped
// on first access.
void prefault_pages([[maybe_unused]] const char* start, [[maybe_unused]] size_t offset,
                    [[maybe_unused]] size_t bytes) {
#ifdef MADV_POPULATE_READ
  if (bytes < kWorthBringingBytes) return;
  const size_t begin = offset / kPackPageBytes * kPackPageBytes;
  ::madvise(const_cast<char*>(start) + begin, offset + bytes - begin, MADV_POPULATE_READ);
#endif
}

constexpr size_t kNonceBytes = 16;
using Nonce = std::array<char, kNonceBytes>;

Nonce random_nonce() {
  Nonce nonce = {};
  const bool is_random =
      ::getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size());
  TESSERA_CHECK(is_random, "so few bytes come whole");
  return nonce;
}

// The key for the code of one pack in one file. It is used for nothing else, because the nonce
// differs by file.
Digest code_key(std::span<const char> nonce, uint64_t index, const UserKey& key) {
  FieldWriter writer;
  writer.text("tessera pack");
  writer.raw(nonce);
  writer.number(index);
  return key.authenticate(writer.bytes);
}

Mac mac_of(std::string_view header, std::span<const char> table, const UserKey& key) {
  FieldWriter writer;
  writer.text("tessera packs");
  writer.raw(header.substr(0, kPackHeaderBytesUsed));
  writer.raw(table);
  return key.authenticate(writer.bytes);
}

}  // namespace

PackPieces::PackPieces(std::span<const StoredPack> packs, const std::string& processor,
                       const UserKey& key) {
  static const std::string kZeros(kPackPageBytes, '\0');
  size_t table_bytes = 4 + processor.size() + 4;
  for (const StoredPack& pack : packs) table_bytes += kMinEntryBytes + pack.key.size();
  const Nonce nonce = random_nonce();
  pieces_.emplace_back();  // the head
  FieldWriter table;
  table.text(processor);
  table.number(static_cast<uint32_t>(packs.size()));
  size_t end = kPackHeaderBytes + sizeof(Mac) + table_bytes;
  for (size_t index = 0; index < packs.size(); ++index) {
    const StoredPack& pack = packs[index];
    const size_t offset = align(end, pack.bytes.size());
    table.text(pack.key);
    table.number(uint64_t{offset});
    table.number(uint64_t{pack.bytes.size()});
    table.raw(chars(one_time_code(pack.bytes, code_key(nonce, index, key))));
    pieces_.push_back(std::string_view(kZeros).substr(0, offset - end));
    pieces_.emplace_back(pack.bytes.data(), pack.bytes.size());
    end = offset + pack.bytes.size();
  }
  FieldWriter header;
  header.bytes = kPackMagic;
  header.number(kPackVersion);
  header.number(static_cast<uint32_t>(table_bytes));
  header.number(uint64_t{end});
  header.raw(nonce);
  header.bytes.resize(kPackHeaderBytes, '\0');
  const Mac mac = mac_of(header.bytes, table.bytes, key);
  header.raw(chars(mac));
  head_ = std::make_shared<const std::string>(std::move(header.bytes) + table.bytes);
  pieces_.front() = *head_;
}

std::string encode_packs(std::span<const StoredPack> packs, const std::string& processor,
                         const UserKey& key) {
  std::string bytes;
  const PackPieces all(packs, processor, key);
  for (const std::string_view piece : all.pieces()) bytes += piece;
  return bytes;
}

ReplacedFile write_packs(const std::filesystem::path& file, std::span<const StoredPack> packs,
                         const std::string& processor, const UserKey& key, Durability durability) {
  const PackPieces all(packs, processor, key);
  const auto write = [&](int descriptor) {
    std::string reason;
    for (const std::string_view piece : all.pieces()) {
      reason = write_bytes(descriptor, piece);
      if (!reason.empty()) break;
    }
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
  Opened opened = within(start, bytes, location, processor, key, trusted == stamp);
  if (opened.file == nullptr) return opened;
  opened.file->stamp_ = stamp;
  opened.file->in_use_ = hold_in_use(path);
  return opened;
}

PackFile::Opened PackFile::over(std::string bytes, const std::string& location,
                                const std::string& processor, const UserKey& key) {
  constexpr auto kAligned = std::align_val_t{kPackAlignment};
  const size_t size = bytes.size();
  auto* const memory = static_cast<char*>(::operator new(std::max<size_t>(size, 1), kAligned));
  std::copy(bytes.begin(), bytes.end(), memory);
  const std::shared_ptr<const char> start(
      memory, [](const char* held) { ::operator delete(const_cast<char*>(held), kAligned); });
  return within(start, size, location, processor, key, /*is_verified=*/false);
}

PackFile::Opened PackFile::within(std::shared_ptr<const char> start, size_t bytes,
                                  const std::string& location, const std::string& processor,
                                  const UserKey& key, bool is_verified) {
  const std::span<const char> all(start.get(), bytes);
  const auto file = std::make_shared<PackFile>();
  file->start_ = std::move(start);
  try {
    FieldReader header(all, location);
    const std::span<const char> magic = header.raw(kPackMagic.size(), "a header");
    const auto version = header.number<uint32_t>("a header");
    const auto table_bytes = header.number<uint32_t>("a header");
    const auto file_bytes = header.number<uint64_t>("a header");
    const std::span<const char> nonce = header.raw(kNonceBytes, "a header");
    header.raw(kPackHeaderBytes - kPackHeaderBytesUsed, "a header");
    const std::span<const char> mac = header.raw(sizeof(Mac), "a code");
    if (!std::equal(magic.begin(), magic.end(), kPackMagic.begin(), kPackMagic.end())) {
      fail_damaged(location, "expected packs, found something else");
    }
    if (version != kPackVersion) {
      return {nullptr,
              location + " are not used: expected version " + std::to_string(kPackVersion) +
                  ", found " + std::to_string(version),
              true};
    }
    if (file_bytes != bytes) {
      fail_damaged(location, "expected " + std::to_string(file_bytes) + " bytes, found " +
                                 std::to_string(bytes));
    }
    const std::span<const char> table = header.raw(table_bytes, "a table");
    Mac stored = {};
    std::memcpy(stored.data(), mac.data(), mac.size());
    if (!is_equal(mac_of({all.data(), kPackHeaderBytesUsed}, table, key), stored)) {
      return {nullptr, location + " are not used: they are damaged, or another user's"};
    }
    FieldReader reader(table, location);
    const std::string made_on = reader.text("a processor");
    if (made_on != processor) {
      return {nullptr, location + " are not used: processor: " + made_on + " in the file, " +
                           processor + " now"};
    }
    const size_t count = reader.count("packs", kMinEntryBytes);
    for (size_t index = 0; index < count; ++index) {
      Entry& entry = file->entries_[reader.text("a key")];
      entry.offset = reader.number<uint64_t>("an offset");
      entry.bytes = reader.number<uint64_t>("a length");
      const std::span<const char> code = reader.raw(entry.code.size(), "a code");
      std::memcpy(entry.code.data(), code.data(), code.size());
      entry.code_key = code_key(nonce, index, key);
      if (is_verified) entry.state = Entry::State::Right;
      const bool is_inside = entry.offset <= bytes && entry.bytes <= bytes - entry.offset &&
                             entry.offset % kPackAlignment == 0;
      if (!is_inside) fail_damaged(location, "expected each pack inside the file");
    }
    if (!reader.is_at_end()) fail_damaged(location, "expected its table to end with the last pack");
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
  return {file, ""};
}

// Threads that ask for the same pack at the same time may both verify it.
bool PackFile::is_right(Entry& entry) {
  if (entry.state == Entry::State::Unknown) {
    const OneTimeCode code =
        one_time_code({start_.get() + entry.offset, entry.bytes}, entry.code_key);
    entry.state = is_equal(code, entry.code) ? Entry::State::Right : Entry::State::Wrong;
  }
  return entry.state == Entry::State::Right;
}

std::optional<PackFile::Found> PackFile::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  prefault_pages(start_.get(), entry.offset, entry.bytes);
  if (!is_right(entry)) return std::nullopt;
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

bool PackFile::is_damaged(const std::string& key) const {
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.state == Entry::State::Wrong;
}

std::vector<std::string> PackFile::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

bool PackFile::is_sound() {
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](auto& named) { return is_right(named.second); });
}

}  // namespace tessera::cache
