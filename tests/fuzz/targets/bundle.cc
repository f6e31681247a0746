#include "store/bundle.h"

#include <algorithm>
#include <cstring>

#include "cache/stored_fields.h"
#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {
namespace {

// See docs/formats/bundle.md.
constexpr size_t kBundleHeaderBytes = 64;
constexpr size_t kHeaderBytesChecked = 24;
constexpr size_t kBundleTableBytesAt = 12;
constexpr size_t kBundleFileBytesAt = 16;

// Writes correct checksums for the parts in the table, as far as the table can be read.
void make_checksums_right(std::string& bytes, size_t table_bytes) {
  const std::string table = bytes.substr(kBundleHeaderBytes, table_bytes);
  cache::FieldReader reader(table, "table");
  reader.text("a version");
  for (auto left = reader.number<uint32_t>("parts"); left > 0; --left) {
    reader.number<uint8_t>("a kind");
    reader.text("a name");
    const auto offset = reader.number<uint64_t>("an offset");
    const auto length = reader.number<uint64_t>("a length");
    const Bytes checksum = reader.raw(cache::kChecksumBytes, "a checksum");
    if (offset > bytes.size() || length > bytes.size() - offset) continue;
    const cache::Checksum right = cache::checksum_of(Bytes(bytes).subspan(offset, length));
    std::memcpy(&bytes[kBundleHeaderBytes + static_cast<size_t>(checksum.data() - table.data())],
                right.data(), right.size());
  }
}

std::string right_bundle(Bytes given) {
  std::string bytes(given.begin(), given.end());
  if (bytes.size() < kBundleHeaderBytes) return bytes;
  write_number(bytes, kBundleFileBytesAt, 8, bytes.size());
  const uint64_t table_bytes = std::min(read_number(bytes, kBundleTableBytesAt, 4),
                                        uint64_t{bytes.size() - kBundleHeaderBytes});
  write_number(bytes, kBundleTableBytesAt, 4, table_bytes);
  try {
    make_checksums_right(bytes, table_bytes);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A table that cannot be read gets a checksum too.
  }
  const cache::Checksum right =
      cache::checksum_of(Bytes(bytes).first(kHeaderBytesChecked),
                         Bytes(bytes).subspan(kBundleHeaderBytes, table_bytes));
  std::memcpy(&bytes[kHeaderBytesChecked], right.data(), right.size());
  return bytes;
}

// Calls `read`, which may refuse the bytes.
template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    expect(error.kind() != ErrorKind::Internal, error.what());
    expect(!error.message().empty(), "an error says what is wrong");
  }
}

void read_all(const Bundle& bundle, const cache::UserKey& key) {
  static const ops::Registry kRegistry = ops::make_registry();
  const Log silent([](const std::string&) {});
  try_to([&] { cache::check_parts(bundle.bytes(), bundle.table(), bundle.location()); });
  try_to([&] { use(bundle.import(kRegistry, silent, {}).graph.values.size()); });
  try_to([&] { use(bundle.read_caches(&key) != nullptr); });
  try_to([&] { use(bundle.read_index({}, key).index.has_value()); });
  try_to([&] {
    const cache::PackFile::Opened packs = bundle.open_packs(key, /*is_verified=*/false);
    if (packs.file != nullptr) packs.file->is_sound();
  });
}

}  // namespace

void fuzz_bundle(Bytes bytes) {
  const cache::UserKey key({});
  for (std::string tried : {std::string(bytes.begin(), bytes.end()), right_bundle(bytes)}) {
    try_to([&] {
      const std::shared_ptr<const Bundle> bundle = Bundle::over(tried, "the fuzzer's bytes");
      if (bundle != nullptr) read_all(*bundle, key);
    });
  }
}

}  // namespace tessera::fuzzing
