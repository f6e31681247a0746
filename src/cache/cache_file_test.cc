#include "cache/cache_file.h"

#include <xxhash.h>

#include <random>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cache {
namespace {

const UserKey kKey({1, 2, 3});
const UserKey kOtherKey({4});

CacheFile example() {
  CacheFile file{.ingredients = {{"graph", "a1"}, {"threads", "2"}}, .notes = {{"model", "m"}}};
  file.put({.type = "plan", .content = "costs", .seconds = 1.5, .bytes = "the plan"});
  file.put({.type = "mylib", .content = "costs", .ingredients = {{"library", "3.2"}}, .bytes = ""});
  file.put({.type = "mylib",
            .content = "kernels",
            .ingredients = {{"library", "3.2.1"}},
            .bytes = std::string(100, '\x90')});
  return file;
}

// Corrects the checksum of header and table, if there is a table.
std::string with_right_checksum(std::string bytes) {
  uint32_t table_bytes = 0;
  for (size_t index = 0; index < 4; ++index) {
    table_bytes |= uint32_t{static_cast<uint8_t>(bytes[12 + index])} << (8 * index);
  }
  if (table_bytes > bytes.size() - 64) return bytes;
  const std::string checked = bytes.substr(0, 24) + bytes.substr(64, table_bytes);
  const XXH128_hash_t hash = XXH3_128bits(checked.data(), checked.size());
  for (size_t index = 0; index < 8; ++index) {
    bytes[24 + index] = static_cast<char>(hash.low64 >> (8 * index));
    bytes[32 + index] = static_cast<char>(hash.high64 >> (8 * index));
  }
  return bytes;
}

// The error message of decode(); "" if it succeeds.
std::string refusal_of(const std::string& bytes) {
  // A copy of the exact size, so that a sanitizer sees each read beyond the end.
  const std::vector<char> copy(bytes.begin(), bytes.end());
  const auto error = thrown_by([&] { decode(copy, &kKey, "file"); });
  if (!error) return "";
  EXPECT_THAT(error->kind(), AnyOf(ErrorKind::Corrupt, ErrorKind::Unsupported)) << error->what();
  return error->what();
}

TEST(CacheFile, ReadsWhatWasWritten) {
  const CacheFile file = example();
  const CacheFile read = decode(encode(file, &kKey), &kKey, "file");
  EXPECT_EQ(read.ingredients, file.ingredients);
  EXPECT_EQ(read.fingerprint(), file.fingerprint());
  ASSERT_EQ(read.sections.size(), 3U);
  EXPECT_EQ(read.notes, file.notes);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(read.sections[index].type, file.sections[index].type);
    EXPECT_EQ(read.sections[index].content, file.sections[index].content);
    EXPECT_EQ(read.sections[index].ingredients, file.sections[index].ingredients);
    EXPECT_EQ(read.sections[index].seconds, file.sections[index].seconds);
    EXPECT_EQ(read.sections[index].made_ns, file.sections[index].made_ns);
    EXPECT_EQ(read.sections[index].bytes, file.sections[index].bytes);
    EXPECT_EQ(read.sections[index].origin, Origin::Signed);
  }
}

TEST(CacheFile, WhatIsNotWantedIsLeftOutButNotWhenItIsDamaged) {
  std::string bytes = encode(example(), &kKey);
  const auto is_plan = [](const Section& section) { return section.type == "plan"; };
  const CacheFile read = decode(bytes, &kKey, "file", is_plan);
  EXPECT_EQ(read.ingredients, example().ingredients);
  ASSERT_EQ(read.sections.size(), 1U);
  EXPECT_EQ(read.sections[0].bytes, "the plan");
  EXPECT_EQ(read.sections[0].origin, Origin::Signed);
  const size_t other = bytes.find(example().find("mylib", "kernels")->bytes);
  ASSERT_NE(other, std::string::npos);
  bytes[other] ^= 1;
  EXPECT_THROW(decode(bytes, &kKey, "file", is_plan), Error);
}

TEST(CacheFile, AnEmptyOneIsOne) {
  EXPECT_EQ(decode(encode({}, nullptr), nullptr, "file"), CacheFile());
}

TEST(CacheFile, PutReplacesWhatIsOfTheSameTypeContentAndKey) {
  CacheFile file = example();
  file.put({.type = "mylib", .content = "costs", .made_ns = 1, .bytes = "new"});
  EXPECT_EQ(file.sections.size(), 4U) << "a version of its own";
  EXPECT_EQ(file.find("mylib", "costs")->bytes, "new");
  EXPECT_EQ(file.find("mylib", "costs", example().sections[1].ingredients)->bytes, "");
  file.put({.type = "mylib", .content = "costs", .made_ns = 1, .bytes = "newer"});
  EXPECT_EQ(file.sections.size(), 4U);
  EXPECT_EQ(file.find("mylib", "costs")->bytes, "newer");
  EXPECT_EQ(file.find("plan", "costs")->bytes, "the plan");
  EXPECT_EQ(file.find("mylib", "packs"), nullptr);
}

TEST(CacheFile, IsVouchedForByItsOwnKeyAloneAndKeptForItsOwner) {
  const std::string bytes = encode(example(), &kKey);
  for (const UserKey* key : {static_cast<const UserKey*>(nullptr), &kOtherKey}) {
    const CacheFile read = decode(bytes, key, "file");
    for (const Section& section : read.sections) EXPECT_EQ(section.origin, Origin::Untrusted);
    EXPECT_EQ(encode(read, key), bytes) << "nobody vouches for what he has read";
  }
}

TEST(CacheFile, WithoutAKeyNobodyVouches) {
  for (const Section& section : decode(encode(example(), nullptr), &kKey, "file").sections) {
    EXPECT_EQ(section.origin, Origin::Untrusted);
  }
}

TEST(CacheFile, NothingMovesToAnotherFingerprintOrKey) {
  CacheFile read = decode(encode(example(), &kKey), &kKey, "file");
  read.ingredients[1].value = "1";
  CacheFile moved = decode(encode(read, &kKey), &kKey, "file");
  EXPECT_EQ(moved.find("mylib", "kernels")->origin, Origin::Untrusted);
  read = decode(encode(example(), &kKey), &kKey, "file");
  read.sections[1].ingredients[0].value = "3.3";
  moved = decode(encode(read, &kKey), &kKey, "file");
  EXPECT_EQ(moved.sections[0].origin, Origin::Signed);
  EXPECT_EQ(moved.sections[1].origin, Origin::Untrusted);
}

TEST(CacheFile, EverySingleByteChangeIsFound) {
  const std::string bytes = encode(example(), &kKey);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      ASSERT_NE(refusal_of(damaged), "") << "byte " << at;
    }
  }
}

TEST(CacheFile, EveryTruncationAndAddedByteIsFound) {
  const std::string bytes = encode(example(), &kKey);
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_NE(refusal_of(bytes.substr(0, length)), "") << "cut at " << length;
  }
  EXPECT_NE(refusal_of(bytes + '\0'), "");
}

TEST(CacheFile, RefusalsSayWhatWasExpected) {
  const std::string bytes = encode(example(), &kKey);
  EXPECT_THAT(refusal_of("no cache at all, whatever else it may be, it is longer than a header"),
              HasSubstr("expected a cache of Tessera's"));
  std::string other = bytes;
  other[8] = kFormatVersion + 1;
  EXPECT_THAT(refusal_of(other),
              HasSubstr("expected version " + std::to_string(kFormatVersion) +
                        " of the format, found " + std::to_string(kFormatVersion + 1)));
  EXPECT_THAT(refusal_of(bytes.substr(0, 200)), HasSubstr("found 200"));
  other = bytes;
  other.back() = 0;
  EXPECT_THAT(refusal_of(other), HasSubstr("section 'mylib' is not as it was written"));
}

TEST(CacheFile, TheIngredientsOfADamagedFileCanBeRead) {
  std::string bytes = encode(example(), &kKey);
  bytes.back() = 0;
  EXPECT_EQ(decode_head(bytes, "file").ingredients, example().ingredients);
}

// An attacker can write matching checksums, so everything that they cover must be checked too.
TEST(CacheFile, DamageUnderRightChecksumsIsFoundOrHarmless) {
  const std::string bytes = encode(example(), &kKey);
  std::mt19937 random(7);
  int refused = 0;
  for (int attempt = 0; attempt < 20'000; ++attempt) {
    std::string damaged = bytes;
    const size_t table = 64 + static_cast<size_t>(random()) % (bytes.size() - 64);
    for (int flip = 0; flip <= attempt % 3; ++flip) {
      char& byte = damaged[(table + static_cast<size_t>(flip)) % bytes.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random() % 255));
    }
    refused += refusal_of(with_right_checksum(damaged)).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tessera::cache
