#include "cache/cache_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "base/errors/check.h"
#include "cache/stored_fields.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

constexpr std::string_view kCacheMagic("TESSERA\x1a", 8);
constexpr size_t kCacheHeaderBytes = 64;
constexpr size_t kCacheHeaderBytesUsed = 40;
constexpr size_t kCacheHeaderBytesChecked = 24;
constexpr size_t kSectionAlignment = 64;
constexpr double kMaxSeconds = 1e9;
// The minimum size of a table entry.
constexpr size_t kMinSectionBytes = 3 * 4 + 4 * 8 + kChecksumBytes + sizeof(Mac);

size_t aligned_section(size_t bytes) {
  return (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

// A MAC authenticates a section and its fingerprint.
Mac mac_of(const Section& section, std::span<const char> bytes, const Fingerprint& fingerprint,
           const UserKey& key) {
  FieldWriter writer;
  writer.text("tessera cache section");
  writer.text(text(fingerprint));
  writer.text(section.type);
  writer.text(section.content);
  writer.ingredients(section.ingredients);
  return key.authenticate(writer.bytes, bytes);
}

// --- Reading

struct StoredSection {
  Section section;  // without its bytes
  size_t offset = 0;
  size_t length = 0;
  Checksum checksum = {};
};

struct Table {
  Fingerprint fingerprint;
  std::vector<Ingredient> ingredients;
  std::vector<Ingredient> notes;
  std::vector<StoredSection> sections;
};

StoredSection read_section_head(FieldReader& reader, const std::string& location) {
  StoredSection stored;
  Section& section = stored.section;
  section.type = reader.text("a section's type");
  section.content = reader.text("a section's content");
  section.ingredients = reader.ingredients();
  section.seconds = std::bit_cast<double>(reader.number<uint64_t>("seconds"));
  // Written so that NaN fails too.
  if (!(section.seconds >= 0 && section.seconds <= kMaxSeconds)) {
    fail_damaged(location, "expected seconds from 0 to 1e9");
  }
  section.made_ns = static_cast<int64_t>(reader.number<uint64_t>("a time"));
  if (section.made_ns < 0) fail_damaged(location, "expected a time since 1970");
  stored.offset = reader.number<uint64_t>("an offset");
  stored.length = reader.number<uint64_t>("a length");
  std::copy_n(reader.raw(kChecksumBytes, "a checksum").begin(), kChecksumBytes,
              stored.checksum.begin());
  const std::span<const char> mac = reader.raw(sizeof(Mac), "a code");
  std::memcpy(section.mac.data(), mac.data(), mac.size());
  return stored;
}

Table read_fields(std::span<const char> table, const std::string& location) {
  FieldReader reader(table, location);
  Table result;
  const std::span<const char> fingerprint = reader.raw(sizeof(Fingerprint), "a fingerprint");
  std::memcpy(result.fingerprint.bytes.data(), fingerprint.data(), fingerprint.size());
  result.ingredients = reader.ingredients();
  if (fingerprint_of(result.ingredients) != result.fingerprint) {
    fail_damaged(location, "expected the fingerprint of its ingredients");
  }
  result.notes = reader.ingredients();
  const size_t count = reader.count("sections", kMinSectionBytes);
  for (size_t index = 0; index < count; ++index) {
    result.sections.push_back(read_section_head(reader, location));
  }
  if (!reader.is_at_end())
    fail_damaged(location, "expected its table to end with the last section");
  return result;
}

// The table of a file. Throws if header or table are damaged.
Table read_table(std::span<const char> bytes, const std::string& location) {
  FieldReader header(bytes, location);
  const std::span<const char> magic = header.raw(kCacheMagic.size(), "a header");
  if (!std::equal(magic.begin(), magic.end(), kCacheMagic.begin())) {
    throw Error(ErrorKind::Corrupt, location,
                "expected a cache of Tessera's, found something else");
  }
  const auto version = header.number<uint32_t>("a header");
  if (version != kFormatVersion) {
    throw Error(ErrorKind::Unsupported, location,
                "expected version " + std::to_string(kFormatVersion) + " of the format, found " +
                    std::to_string(version));
  }
  const auto table_bytes = header.number<uint32_t>("a header");
  const auto file_bytes = header.number<uint64_t>("a header");
  const std::span<const char> checksum = header.raw(kChecksumBytes, "a header");
  if (file_bytes != bytes.size()) {
    fail_damaged(location, "expected " + std::to_string(file_bytes) + " bytes, found " +
                               std::to_string(bytes.size()));
  }
  const std::span<const char> unused =
      header.raw(kCacheHeaderBytes - kCacheHeaderBytesUsed, "a header");
  const bool is_clean =
      std::all_of(unused.begin(), unused.end(), [](char byte) { return byte == 0; });
  const std::span<const char> table = header.raw(table_bytes, "a table");
  const Checksum found = checksum_of(bytes.first(kCacheHeaderBytesChecked), table);
  if (!is_clean || !std::equal(found.begin(), found.end(), checksum.begin())) {
    fail_damaged(location, "its header or table is not as it was written");
  }
  return read_fields(table, location);
}

Fingerprint identity_of(const Section& section) {
  std::vector<Ingredient> all = {{section.type, section.content}};
  all.insert(all.end(), section.ingredients.begin(), section.ingredients.end());
  return fingerprint_of(all);
}

bool is_zero(std::span<const char> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

// Checks that the sections are where encode() puts them, with nothing between them.
void check_section_offsets(const Table& table, std::span<const char> bytes, size_t table_bytes,
                           const std::string& location) {
  size_t end = kCacheHeaderBytes + table_bytes;
  std::set<Fingerprint> seen;
  for (const StoredSection& stored : table.sections) {
    const size_t start = aligned_section(end);
    const bool is_inside = stored.offset == start && start <= bytes.size() &&
                           stored.length <= bytes.size() - start &&
                           is_zero(bytes.subspan(end, start - end));
    if (!is_inside) fail_damaged(location, "expected each section behind the one before");
    if (!seen.insert(identity_of(stored.section)).second) {
      fail_damaged(location, "expected each section once");
    }
    end = start + stored.length;
  }
  if (end != bytes.size()) fail_damaged(location, "expected its end behind the last section");
}

size_t table_bytes_of(std::span<const char> bytes) {
  uint32_t count = 0;
  for (size_t index = 0; index < sizeof(count); ++index) {
    count |= uint32_t{static_cast<uint8_t>(bytes[12 + index])} << (8 * index);
  }
  return count;
}

}  // namespace

const Section* CacheFile::find(std::string_view type, std::string_view content) const {
  const Section* newest = nullptr;
  for (const Section& section : sections) {
    if (section.type != type || section.content != content) continue;
    if (newest == nullptr || section.made_ns >= newest->made_ns) newest = &section;
  }
  return newest;
}

const Section* CacheFile::find(std::string_view type, std::string_view content,
                               std::span<const Ingredient> key) const {
  for (const Section& section : sections) {
    if (section.type == type && section.content == content &&
        std::ranges::equal(section.ingredients, key)) {
      return &section;
    }
  }
  return nullptr;
}

void CacheFile::put(Section section) {
  for (Section& present : sections) {
    if (present.type != section.type || present.content != section.content) continue;
    if (present.ingredients != section.ingredients) continue;
    present = std::move(section);
    return;
  }
  sections.push_back(std::move(section));
}

std::string CacheFile::note(std::string_view name) const {
  for (const Ingredient& one : notes) {
    if (one.name == name) return one.value;
  }
  return {};
}

void CacheFile::set_note(std::string_view name, std::string value) {
  for (Ingredient& one : notes) {
    if (one.name != name) continue;
    one.value = std::move(value);
    return;
  }
  notes.push_back({std::string(name), std::move(value)});
}

namespace {

// The table with offsets of 0, and where they stand in it. Offsets depend on the table's length,
// which does not depend on their values.
FieldWriter write_fields(const CacheFile& file, const UserKey* key,
                         std::vector<size_t>& offset_places) {
  const Fingerprint fingerprint = file.fingerprint();
  FieldWriter table;
  table.raw({reinterpret_cast<const char*>(fingerprint.bytes.data()), fingerprint.bytes.size()});
  table.ingredients(file.ingredients);
  table.ingredients(file.notes);
  table.number(static_cast<uint32_t>(file.sections.size()));
  for (const Section& section : file.sections) {
    table.text(section.type);
    table.text(section.content);
    table.ingredients(section.ingredients);
    table.number(std::bit_cast<uint64_t>(section.seconds));
    table.number(static_cast<uint64_t>(section.made_ns));
    offset_places.push_back(table.bytes.size());
    table.number(uint64_t{0});
    table.number(uint64_t{section.bytes.size()});
    table.raw(checksum_of(section.bytes));
    const bool is_to_be_signed = section.origin == Origin::Local && key != nullptr;
    const Mac mac =
        is_to_be_signed ? mac_of(section, section.bytes, fingerprint, *key) : section.mac;
    table.raw({reinterpret_cast<const char*>(mac.data()), mac.size()});
  }
  return table;
}

}  // namespace

std::string encode(const CacheFile& file, const UserKey* key) {
  std::vector<size_t> offset_places;
  FieldWriter table = write_fields(file, key, offset_places);
  size_t end = kCacheHeaderBytes + table.bytes.size();
  for (size_t index = 0; index < file.sections.size(); ++index) {
    FieldWriter offset;
    offset.number(uint64_t{aligned_section(end)});
    table.bytes.replace(offset_places[index], offset.bytes.size(), offset.bytes);
    end = aligned_section(end) + file.sections[index].bytes.size();
  }
  TESSERA_CHECK(table.bytes.size() <= std::numeric_limits<uint32_t>::max(), "texts are short");
  FieldWriter result;
  result.bytes = kCacheMagic;
  result.number(kFormatVersion);
  result.number(static_cast<uint32_t>(table.bytes.size()));
  result.number(uint64_t{end});
  result.raw(checksum_of(result.bytes, table.bytes));
  result.bytes.resize(kCacheHeaderBytes, '\0');
  result.bytes += table.bytes;
  for (const Section& section : file.sections) {
    result.bytes.resize(aligned_section(result.bytes.size()), '\0');
    result.bytes += section.bytes;
  }
  return std::move(result.bytes);
}

CacheFile decode(std::span<const char> bytes, const UserKey* key, const std::string& location,
                 const IsWanted& is_wanted) {
  Table table = read_table(bytes, location);
  check_section_offsets(table, bytes, table_bytes_of(bytes), location);
  CacheFile file{.ingredients = std::move(table.ingredients), .notes = std::move(table.notes)};
  for (StoredSection& stored : table.sections) {
    const std::span<const char> content = bytes.subspan(stored.offset, stored.length);
    if (checksum_of(content) != stored.checksum) {
      fail_damaged(location, "section '" + stored.section.type + "' is not as it was written");
    }
    Section& section = stored.section;
    if (is_wanted && !is_wanted(section)) continue;
    const bool is_ours = key != nullptr && section.mac != Mac{} &&
                         is_equal(mac_of(section, content, table.fingerprint, *key), section.mac);
    section.origin = is_ours ? Origin::Signed : Origin::Untrusted;
    section.bytes.assign(content.begin(), content.end());
    file.sections.push_back(std::move(section));
  }
  return file;
}

bool is_cache(std::span<const char> bytes) {
  return bytes.size() >= kCacheMagic.size() &&
         std::equal(kCacheMagic.begin(), kCacheMagic.end(), bytes.begin());
}

CacheFile decode_head(std::span<const char> bytes, const std::string& location) {
  Table table = read_table(bytes, location);
  return {.ingredients = std::move(table.ingredients), .notes = std::move(table.notes)};
}

}  // namespace tessera::cache
