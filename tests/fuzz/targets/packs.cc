#include <algorithm>
#include <cstring>

#include "cache/digest.h"
#include "cache/pack_file.h"
#include "cache/stored_fields.h"
#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {
namespace {

// See docs/formats/packs.md.
constexpr size_t kPacksHeaderBytes = 64;
constexpr size_t kHeaderBytesUsed = 40;
constexpr size_t kPacksTableBytesAt = 12;
constexpr size_t kPacksFileBytesAt = 16;
constexpr size_t kNonceAt = 24;
constexpr size_t kNonceBytes = 16;
constexpr size_t kTableAt = kPacksHeaderBytes + sizeof(cache::Mac);

// Writes correct codes for the packs in the table, as far as the table can be read.
void make_codes_right(std::string& bytes, size_t table_bytes, const cache::UserKey& key) {
  const std::string table = bytes.substr(kTableAt, table_bytes);
  cache::FieldReader reader(table, "table");
  reader.text("a processor");
  const auto count = reader.number<uint32_t>("packs");
  for (uint64_t index = 0; index < count; ++index) {
    reader.text("a key");
    const auto offset = reader.number<uint64_t>("an offset");
    const auto length = reader.number<uint64_t>("a length");
    const Bytes code = reader.raw(sizeof(cache::OneTimeCode), "a code");
    if (offset > bytes.size() || length > bytes.size() - offset) continue;
    cache::FieldWriter vouched;
    vouched.text("tessera pack");
    vouched.raw(Bytes(bytes).subspan(kNonceAt, kNonceBytes));
    vouched.number(index);
    const cache::OneTimeCode right =
        cache::one_time_code(Bytes(bytes).subspan(offset, length), key.authenticate(vouched.bytes));
    std::memcpy(&bytes[kTableAt + static_cast<size_t>(code.data() - table.data())], right.data(),
                right.size());
  }
}

std::string right_packs(Bytes given, const cache::UserKey& key) {
  std::string bytes(given.begin(), given.end());
  if (bytes.size() < kTableAt) return bytes;
  write_number(bytes, kPacksFileBytesAt, 8, bytes.size());
  const uint64_t table_bytes =
      std::min(read_number(bytes, kPacksTableBytesAt, 4), uint64_t{bytes.size() - kTableAt});
  write_number(bytes, kPacksTableBytesAt, 4, table_bytes);
  try {
    make_codes_right(bytes, table_bytes, key);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A table that cannot be read is signed too.
  }
  cache::FieldWriter vouched;
  vouched.text("tessera packs");
  vouched.raw(Bytes(bytes).first(kHeaderBytesUsed));
  vouched.raw(Bytes(bytes).subspan(kTableAt, table_bytes));
  const cache::Mac mac = key.authenticate(vouched.bytes);
  std::memcpy(&bytes[kPacksHeaderBytes], mac.data(), mac.size());
  return bytes;
}

}  // namespace

void fuzz_packs(Bytes bytes) {
  const cache::UserKey key({});
  for (const std::string& tried :
       {std::string(bytes.begin(), bytes.end()), right_packs(bytes, key)}) {
    const cache::PackFile::Opened opened = cache::PackFile::over(tried, "packs", "fuzz", key);
    expect((opened.file == nullptr) != opened.reason.empty(), "there is a file or a reason");
    if (opened.file == nullptr) continue;
    // All bytes of the packs that it returns must be readable.
    uint64_t sum = 0;
    for (const std::string& name : opened.file->keys()) {
      const auto found = opened.file->find(name);
      if (!found) continue;
      const auto* const start = static_cast<const char*>(found->bytes.get());
      for (int64_t index = 0; index < found->size; ++index)
        sum += static_cast<uint8_t>(start[index]);
    }
    use(sum);
    opened.file->is_sound();
  }
}

}  // namespace tessera::fuzzing
