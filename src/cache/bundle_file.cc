#include "cache/bundle_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "tessera/error.h"

namespace tessera::cache {
namespace {

constexpr std::string_view kBundleMagic("TESBNDL\x1a", 8);
constexpr uint32_t kBundleVersion = 1;
constexpr size_t kBundleHeaderBytes = 64;
constexpr size_t kBundleHeaderBytesChecked = 24;
// Parts begin at pages, so that they can be mapped, and data that is aligned in them is aligned in
// memory.
constexpr size_t kBundlePageBytes = 4096;
constexpr size_t kBytesAtOnce = size_t{16} << 20;
constexpr size_t kMinPartBytes = 1 + 4 + 8 + 8 + kChecksumBytes;

constexpr std::array<std::string_view, 5> kKindNames = {"model", "external data", "caches", "index",
                                                        "packs"};

uint64_t aligned_part(uint64_t offset) {
  return (offset + kBundlePageBytes - 1) / kBundlePageBytes * kBundlePageBytes;
}

constexpr const char* kRemedy = "make the bundle again";

[[noreturn]] void fail(const std::string& location, const std::string& message) {
  fail_damaged(location, message, kRemedy);
}

// The header and the table.
std::string head_of(const BundleTable& table) {
  FieldWriter fields;
  fields.text(table.version);
  fields.number(static_cast<uint32_t>(table.parts.size()));
  for (const BundlePart& part : table.parts) {
    fields.number(static_cast<uint8_t>(part.kind));
    fields.text(part.name);
    fields.number(part.offset);
    fields.number(part.bytes);
    fields.raw(part.checksum);
  }
  const uint64_t end = table.parts.empty() ? kBundleHeaderBytes + fields.bytes.size()
                                           : table.parts.back().offset + table.parts.back().bytes;
  FieldWriter header;
  header.bytes = kBundleMagic;
  header.number(kBundleVersion);
  header.number(static_cast<uint32_t>(fields.bytes.size()));
  header.number(end);
  header.raw(checksum_of(header.bytes, fields.bytes));
  header.bytes.resize(kBundleHeaderBytes, '\0');
  return std::move(header.bytes) + fields.bytes;
}

BundlePart read_part(FieldReader& reader, const std::string& location) {
  BundlePart part;
  const auto kind = reader.number<uint8_t>("a part's kind");
  if (kind >= kKindNames.size()) {
    fail(location, "expected a kind of part below " + std::to_string(kKindNames.size()) +
                       ", found " + std::to_string(kind));
  }
  part.kind = static_cast<PartKind>(kind);
  part.name = reader.text("a part's name");
  part.offset = reader.number<uint64_t>("an offset");
  part.bytes = reader.number<uint64_t>("a length");
  const std::span<const char> checksum = reader.raw(kChecksumBytes, "a checksum");
  std::copy(checksum.begin(), checksum.end(), part.checksum.begin());
  return part;
}

// Each part is where write_bundle() puts it, and there are as many of each kind as there may be.
void check_layout(const BundleTable& table, uint64_t head_bytes, uint64_t file_bytes,
                  const std::string& location) {
  if (table.parts.empty() || table.parts.front().kind != PartKind::Model) {
    fail(location, "expected a model as the first part, found none");
  }
  uint64_t end = head_bytes;
  PartKind last = PartKind::Model;
  std::set<std::pair<PartKind, std::string>> seen;
  for (const BundlePart& part : table.parts) {
    const std::string named = std::string(name(part.kind)) + " '" + part.name + "'";
    const std::string& distinct = part.kind == PartKind::ExternalData ? part.name : "";
    if (part.kind < last || !seen.emplace(part.kind, distinct).second) {
      fail(location, "expected each part once, in the order of kinds; found " + named);
    }
    last = part.kind;
    const uint64_t start = aligned_part(end);
    const bool is_inside =
        part.offset == start && start <= file_bytes && part.bytes <= file_bytes - start;
    if (!is_inside) {
      fail(location, "expected " + named + " at byte " + std::to_string(start) + " and inside " +
                         std::to_string(file_bytes) + " bytes, found " +
                         std::to_string(part.bytes) + " bytes at " + std::to_string(part.offset));
    }
    end = start + part.bytes;
  }
  if (end != file_bytes) {
    fail(location, "expected its end behind the last part, at byte " + std::to_string(end) +
                       ", found it at " + std::to_string(file_bytes));
  }
}

}  // namespace

std::string_view name(PartKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

const BundlePart* BundleTable::find(PartKind kind) const {
  const auto found = std::ranges::find(parts, kind, &BundlePart::kind);
  return found == parts.end() ? nullptr : &*found;
}

bool is_bundle(std::span<const char> bytes) {
  return bytes.size() >= kBundleMagic.size() &&
         std::equal(kBundleMagic.begin(), kBundleMagic.end(), bytes.begin());
}

namespace {

void check_as_written(std::span<const char> bytes, std::span<const char> fields,
                      std::span<const char> checksum, const std::string& location) {
  const std::span<const char> unused =
      bytes.subspan(kBundleHeaderBytesChecked + kChecksumBytes,
                    kBundleHeaderBytes - kBundleHeaderBytesChecked - kChecksumBytes);
  const Checksum found = checksum_of(bytes.first(kBundleHeaderBytesChecked), fields);
  const bool is_clean = std::ranges::all_of(unused, [](char byte) { return byte == 0; });
  if (!is_clean || !std::ranges::equal(found, checksum)) {
    fail(location, "expected header and table as they were written, found others");
  }
}

}  // namespace

BundleTable read_bundle_table(std::span<const char> bytes, const std::string& location) {
  if (!is_bundle(bytes)) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected a bundle, as `tessera bundle` writes it; found something else");
  }
  if (bytes.size() < kBundleHeaderBytes) {
    fail(location, "expected a header of " + std::to_string(kBundleHeaderBytes) + " bytes, found " +
                       std::to_string(bytes.size()));
  }
  FieldReader header(bytes, location, kRemedy);
  header.raw(kBundleMagic.size(), "a header");
  const auto version = header.number<uint32_t>("a header");
  if (version != kBundleVersion) {
    throw Error(ErrorKind::Unsupported, location,
                "expected version " + std::to_string(kBundleVersion) + " of the format, found " +
                    std::to_string(version) + "; make the bundle again with this Tessera");
  }
  const auto table_bytes = header.number<uint32_t>("a header");
  const auto file_bytes = header.number<uint64_t>("a header");
  const std::span<const char> checksum = header.raw(kChecksumBytes, "a header");
  if (file_bytes != bytes.size()) {
    fail(location, "expected " + std::to_string(file_bytes) + " bytes, found " +
                       std::to_string(bytes.size()));
  }
  if (table_bytes > bytes.size() - kBundleHeaderBytes) {
    fail(location, "expected a table of " + std::to_string(table_bytes) + " bytes, found " +
                       std::to_string(bytes.size() - kBundleHeaderBytes));
  }
  const std::span<const char> fields = bytes.subspan(kBundleHeaderBytes, table_bytes);
  check_as_written(bytes, fields, checksum, location);
  FieldReader reader(fields, location, kRemedy);
  BundleTable table;
  table.version = reader.text("a version");
  const size_t count = reader.count("parts", kMinPartBytes);
  for (size_t index = 0; index < count; ++index) table.parts.push_back(read_part(reader, location));
  if (!reader.is_at_end()) fail(location, "expected its table to end with the last part");
  check_layout(table, kBundleHeaderBytes + table_bytes, file_bytes, location);
  return table;
}

std::string_view part_bytes(std::span<const char> bundle, const BundlePart& part,
                            const std::string& location, bool is_checked) {
  const std::string_view bytes(bundle.data() + part.offset, part.bytes);
  if (is_checked && checksum_of(bytes) != part.checksum) {
    fail(location, "expected " + std::string(name(part.kind)) +
                       (part.name.empty() ? "" : " '" + part.name + "'") +
                       " as it was written, found other bytes");
  }
  return bytes;
}

void check_parts(std::span<const char> bundle, const BundleTable& table,
                 const std::string& location) {
  // The table is followed by the first part, as each part is by the next.
  uint64_t end = head_of(table).size();
  for (const BundlePart& part : table.parts) {
    const std::span<const char> between = bundle.subspan(end, part.offset - end);
    if (!std::ranges::all_of(between, [](char byte) { return byte == 0; })) {
      fail(location, "expected zeros before " + std::string(name(part.kind)) + ", found others");
    }
    part_bytes(bundle, part, location);
    end = part.offset + part.bytes;
  }
}

ReplacedFile write_bundle(const std::filesystem::path& file, const std::string& version,
                          std::span<const NewPart> parts,
                          const std::function<void()>& check_wanted) {
  static const std::string kZeros(kBundlePageBytes, '\0');
  BundleTable table{.version = version, .parts = {}};
  for (const NewPart& part : parts) {
    uint64_t bytes = 0;
    for (const std::string_view piece : part.pieces) bytes += piece.size();
    table.parts.push_back({.kind = part.kind,
                           .name = part.name,
                           .offset = 0,
                           .bytes = bytes,
                           .checksum = checksum_of_pieces(part.pieces)});
  }
  // The size of the table does not depend on the offsets in it.
  uint64_t end = head_of(table).size();
  for (BundlePart& part : table.parts) {
    part.offset = aligned_part(end);
    end = part.offset + part.bytes;
  }
  return replace_file_by(file, [&](int descriptor) {
    const std::string head = head_of(table);
    std::string reason = write_bytes(descriptor, head);
    uint64_t at = head.size();
    for (size_t index = 0; index < parts.size() && reason.empty(); ++index) {
      const BundlePart& part = table.parts[index];
      reason = write_bytes(descriptor, std::string_view(kZeros).substr(0, part.offset - at));
      for (std::string_view piece : parts[index].pieces) {
        while (!piece.empty() && reason.empty()) {
          check_wanted();
          reason = write_bytes(descriptor, piece.substr(0, kBytesAtOnce));
          piece.remove_prefix(std::min(piece.size(), kBytesAtOnce));
        }
      }
      at = part.offset + part.bytes;
    }
    return reason;
  });
}

}  // namespace tessera::cache
