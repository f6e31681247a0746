#include "cache/pack_file.h"

#include <cstring>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera::cache {
namespace {

constexpr const char* kHere = "this processor";

UserKey key_of(uint8_t byte) {
  std::array<uint8_t, 32> bytes{};
  bytes.fill(byte);
  return UserKey(bytes);
}

// A file of two packs: a small one, and one larger than a page.
class PackFileTest : public testing::Test {
 protected:
  PackFileTest() {
    written_ = write_packs(path_, packs_, kHere, key_);
    EXPECT_EQ(written_.refusal, "");
  }
  PackFile::Opened open(const std::optional<FileStamp>& trusted = std::nullopt) const {
    return PackFile::open(path_, kHere, key_, trusted);
  }
  // The contents of the file for `key`, if any.
  static std::string found(PackFile& file, const StoredPack& pack) {
    const auto bytes = static_cast<int64_t>(pack.bytes.size());
    const std::shared_ptr<const void> held = file.find(pack.key, bytes);
    if (held == nullptr) return "none";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(held.get()) % 64, 0U);
    return {static_cast<const char*>(held.get()), pack.bytes.size()};
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "some.packs";
  const UserKey key_ = key_of(7);
  ReplacedFile written_;
  const std::string small_ = "a small pack";
  const std::string large_ = std::string(5000, 'x') + "end";
  const std::vector<StoredPack> packs_ = {{"first", small_}, {"second", large_}};
};

TEST_F(PackFileTest, GivesWhatWasWritten) {
  const PackFile::Opened opened = open();
  ASSERT_NE(opened.file, nullptr) << opened.reason;
  EXPECT_EQ(found(*opened.file, packs_[0]), small_);
  EXPECT_EQ(found(*opened.file, packs_[1]), large_);
  EXPECT_TRUE(opened.file->is_sound());
  EXPECT_EQ(opened.file->find("third", 5), nullptr);
  EXPECT_EQ(opened.file->find("first", 5), nullptr) << "of another size";
  const std::optional<PackFile::Found> of_any_size = opened.file->find("first");
  ASSERT_TRUE(of_any_size);
  EXPECT_EQ(std::string(static_cast<const char*>(of_any_size->bytes.get()),
                        static_cast<size_t>(of_any_size->size)),
            small_);
  EXPECT_FALSE(opened.file->find("third"));
  EXPECT_THAT(opened.file->keys(), ElementsAre("first", "second"));
  EXPECT_TRUE(opened.file->has("first"));
  EXPECT_FALSE(opened.file->has("third"));
}

TEST_F(PackFileTest, IsTrustedByTheStampWithWhichItWasWritten) {
  ASSERT_TRUE(written_.stamp);
  EXPECT_EQ(written_.stamp, stamp_of(path_));
  write_packs(path_, packs_, kHere, key_);
  EXPECT_NE(written_.stamp, stamp_of(path_)) << "another file of the same contents";
}

TEST_F(PackFileTest, IsTheSameFromMemory) {
  const PackFile::Opened opened =
      PackFile::over(encode_packs(packs_, kHere, key_), "memory", kHere, key_);
  ASSERT_NE(opened.file, nullptr) << opened.reason;
  EXPECT_EQ(found(*opened.file, packs_[1]), large_);
  const std::string again = encode_packs(packs_, kHere, key_);
  EXPECT_EQ(again.size(), read_text(path_).size());
  EXPECT_NE(again, read_text(path_)) << "each file has codes of its own";
}

TEST_F(PackFileTest, WhatIsFoundOutlivesTheFile) {
  PackFile::Opened opened = open();
  const std::shared_ptr<const void> held =
      opened.file->find("first", static_cast<int64_t>(small_.size()));
  opened.file.reset();
  std::filesystem::remove(path_);
  EXPECT_EQ(std::memcmp(held.get(), small_.data(), small_.size()), 0);
}

TEST_F(PackFileTest, AnotherProcessorOrUserIsAMissThatSaysSo) {
  EXPECT_THAT(PackFile::open(path_, "that one", key_, std::nullopt).reason,
              HasSubstr("processor: this processor in the file, that one now"));
  const PackFile::Opened foreign = PackFile::open(path_, kHere, key_of(8), std::nullopt);
  EXPECT_EQ(foreign.file, nullptr);
  EXPECT_THAT(foreign.reason, HasSubstr("another user's"));
}

TEST_F(PackFileTest, WhatOthersMayWriteToIsRefused) {
  ::chmod(path_.c_str(), 0666);
  EXPECT_THAT(open().reason, HasSubstr("others than its owner may write to it"));
}

// Changes each byte to three other values: none may give other contents.
TEST_F(PackFileTest, EachChangedByteIsAMissOrChangesNothing) {
  const std::string whole = read_text(path_);
  int misses = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const PackFile::Opened opened = PackFile::over(damaged, "memory", kHere, key_);
      if (opened.file == nullptr) {
        EXPECT_FALSE(opened.reason.empty());
        ++misses;
        continue;
      }
      for (const StoredPack& pack : packs_) {
        const std::string content = found(*opened.file, pack);
        const std::string right(pack.bytes.begin(), pack.bytes.end());
        ASSERT_TRUE(content == "none" || content == right) << "byte " << at;
        if (content == "none") ++misses;
      }
    }
  }
  EXPECT_GE(misses, 3 * static_cast<int>(small_.size() + large_.size()));
}

TEST_F(PackFileTest, AnotherVersionIsNoDamage) {
  std::string other = read_text(path_);
  ++other[8];
  const PackFile::Opened opened = PackFile::over(other, "memory", kHere, key_);
  EXPECT_EQ(opened.file, nullptr);
  EXPECT_TRUE(opened.is_of_other_version);
  EXPECT_THAT(opened.reason, HasSubstr("memory are not used: expected version 4, found 5"));
  other = read_text(path_);
  ++other[0];
  EXPECT_FALSE(PackFile::over(other, "memory", kHere, key_).is_of_other_version);
}

TEST_F(PackFileTest, EachTruncationIsAMiss) {
  const std::string whole = read_text(path_);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const PackFile::Opened opened = PackFile::over(whole.substr(0, bytes), "memory", kHere, key_);
    ASSERT_EQ(opened.file, nullptr) << bytes << " bytes";
    ASSERT_FALSE(opened.reason.empty());
  }
}

TEST_F(PackFileTest, IsNotLookedAtAgainUnderTheStampThatItHad) {
  const std::optional<FileStamp> stamp = open().file->stamp();
  ASSERT_TRUE(stamp);
  // Changes the last byte, which belongs to the second pack only.
  std::string damaged = read_text(path_);
  damaged.back() = 'X';
  write_text(path_, damaged);
  const PackFile::Opened changed = open(stamp);
  ASSERT_NE(changed.file, nullptr);
  EXPECT_EQ(found(*changed.file, packs_[0]), small_);
  EXPECT_EQ(found(*changed.file, packs_[1]), "none") << "the stamp is another one";
  EXPECT_FALSE(changed.file->is_sound());
  // Opening with this stamp as trusted skips verification.
  const PackFile::Opened trusted = open(changed.file->stamp());
  EXPECT_EQ(found(*trusted.file, packs_[1]), std::string(5000, 'x') + "enX");
}

}  // namespace
}  // namespace tessera::cache
