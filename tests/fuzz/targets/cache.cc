#include "cache/cache_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cache/stored_fields.h"
#include "price/cost_sections.h"
#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {
namespace {

using cache::CacheFile;
using cache::kChecksumBytes;

// See docs/formats/cache.md.
constexpr size_t kCacheHeaderBytes = 64;
constexpr size_t kCacheTableBytesAt = 12;
constexpr size_t kCacheFileBytesAt = 16;
constexpr size_t kChecksumAt = 24;
constexpr size_t kFingerprintBytes = 20;

void put_checksum(std::string& bytes, size_t at, const cache::Checksum& checksum) {
  if (at + kChecksumBytes <= bytes.size()) std::copy(checksum.begin(), checksum.end(), &bytes[at]);
}

// A reader of `bytes` that knows its position.
struct TableReader {
  explicit TableReader(const std::string& given) : bytes(given), reader(given, "table") {}
  size_t at() {
    // The reader reports its position only through the bytes that it returns.
    return static_cast<size_t>(reader.raw(0, "nothing").data() - bytes.data());
  }
  const std::string& bytes;
  cache::FieldReader reader;
};

// Writes correct checksums for the sections in the table, as far as the table can be read.
void make_sections_right(std::string& bytes, size_t table_bytes) {
  try {
    const std::string before = bytes;
    const std::string table = before.substr(0, kCacheHeaderBytes + table_bytes);
    TableReader table_reader(table);
    table_reader.reader.raw(kCacheHeaderBytes + kFingerprintBytes, "a header");
    const std::vector<cache::Ingredient> ingredients = table_reader.reader.ingredients();
    const cache::Fingerprint fingerprint = cache::fingerprint_of(ingredients);
    std::memcpy(&bytes[kCacheHeaderBytes], fingerprint.bytes.data(), kFingerprintBytes);
    table_reader.reader.ingredients();  // notes
    for (auto left = table_reader.reader.number<uint32_t>("sections"); left > 0; --left) {
      table_reader.reader.text("a type");
      table_reader.reader.text("a content");
      table_reader.reader.ingredients();
      table_reader.reader.number<uint64_t>("seconds");
      table_reader.reader.number<uint64_t>("a time");
      const auto offset = table_reader.reader.number<uint64_t>("an offset");
      const auto length = table_reader.reader.number<uint64_t>("a length");
      const size_t checksum_at = table_reader.at();
      table_reader.reader.raw(kChecksumBytes + sizeof(cache::Mac), "the rest");
      if (offset > before.size() || length > before.size() - offset) continue;
      put_checksum(bytes, checksum_at, cache::checksum_of(Bytes(before).subspan(offset, length)));
    }
  } catch (const Error&) {
    return;  // a table that cannot be read gets a checksum too
  }
}

std::string right_cache(Bytes given) {
  std::string bytes(given.begin(), given.end());
  if (bytes.size() < kCacheHeaderBytes + kFingerprintBytes) return bytes;
  write_number(bytes, kCacheFileBytesAt, 8, bytes.size());
  const uint64_t table_bytes = std::min(read_number(bytes, kCacheTableBytesAt, 4),
                                        uint64_t{bytes.size() - kCacheHeaderBytes});
  write_number(bytes, kCacheTableBytesAt, 4, table_bytes);
  make_sections_right(bytes, table_bytes);
  put_checksum(bytes, kChecksumAt,
               cache::checksum_of(Bytes(bytes).first(kChecksumAt),
                                  Bytes(bytes).subspan(kCacheHeaderBytes, table_bytes)));
  return bytes;
}

// All libraries that the file names, so that no cost is dropped because of its library.
std::vector<tuning::PricedLibrary> libraries_of(const CacheFile& file) {
  std::vector<tuning::PricedLibrary> libraries;
  for (const cache::Section& section : file.sections) {
    libraries.push_back({section.type, "version=1;", section.ingredients});
  }
  return libraries;
}

void read(const std::string& bytes) {
  const cache::UserKey key({});
  const CacheFile file = cache::decode(bytes, &key, "file");
  expect(cache::encode(file, &key) == bytes, "what is decoded is encoded as it was");
  expect(cache::decode_head(bytes, "file").ingredients == file.ingredients,
         "both ways of reading agree");
  const auto libraries = libraries_of(file);
  tuning::take_plan(file, {{"threads", "2"}}, libraries, "file");
  tuning::check_plans(file, "file");
  tuning::take_costs(file, "", libraries, "file");
}

}  // namespace

void fuzz_cache(Bytes bytes) {
  for (const std::string& tried : {std::string(bytes.begin(), bytes.end()), right_cache(bytes)}) {
    try {
      read(tried);
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::Corrupt || error.kind() == ErrorKind::Unsupported,
             error.what());
    }
  }
}

}  // namespace tessera::fuzzing
