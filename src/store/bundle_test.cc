#include "store/bundle.h"

#include <fstream>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/machine/processor.h"
#include "base/matchers_test.h"
#include "ops/all_ops_test.h"
#include "store/stored_blobs.h"

namespace tessera {
namespace {

using cache::PartKind;

constexpr const char* kName = "the test";

class BundleTest : public testing::Test {
 protected:
  // The bytes of a bundle with these parts.
  std::string bytes_of(const std::vector<cache::NewPart>& parts) const {
    EXPECT_EQ(cache::write_bundle(file_, "1.0.0", parts, [] {}).refusal, "");
    return read_text(file_);
  }
  static std::string import_error(const Bundle& bundle) {
    return error_of([&] { bundle.import(all_ops(), Log([](const std::string&) {}), {}); });
  }
  static cache::UserKey key_of(uint8_t byte) {
    std::array<uint8_t, 32> bytes{};
    bytes.fill(byte);
    return cache::UserKey(bytes);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "a.bundle";
  const cache::NewPart model_ = {.kind = PartKind::Model, .name = "m.onnx", .pieces = {"no model"}};
};

TEST_F(BundleTest, OtherFilesAreNoBundles) {
  EXPECT_EQ(Bundle::open(folder_.path()), nullptr) << "a folder";
  EXPECT_EQ(Bundle::open(folder_.path() / "none"), nullptr);
  EXPECT_EQ(Bundle::open("/dev/null"), nullptr);
  for (const std::string text : {"", "short", "a text that is long enough"}) {
    std::ofstream(file_, std::ios::trunc) << text;
    EXPECT_EQ(Bundle::open(file_), nullptr) << text;
    std::string bytes = text;
    EXPECT_EQ(Bundle::over(bytes, kName), nullptr);
    EXPECT_EQ(bytes, text) << "others still read it";
  }
}

TEST_F(BundleTest, IsTheSameFromAFileAndFromMemory) {
  std::string bytes = bytes_of({model_});
  const std::shared_ptr<const Bundle> from_file = Bundle::open(file_);
  const std::shared_ptr<const Bundle> from_memory = Bundle::over(bytes, kName);
  ASSERT_NE(from_file, nullptr);
  ASSERT_NE(from_memory, nullptr);
  EXPECT_EQ(from_file->model_bytes(), "no model");
  EXPECT_EQ(from_memory->model_bytes(), "no model");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(from_memory->bytes().data()) % 4096, 0U);
  ASSERT_TRUE(from_file->file());
  EXPECT_EQ(from_file->file()->path, std::filesystem::absolute(file_));
  EXPECT_FALSE(from_memory->file());
  EXPECT_EQ(from_file->changeable(), "");
}

TEST_F(BundleTest, AFileThatOthersMayWriteToIsMarked) {
  bytes_of({model_});
  std::filesystem::permissions(file_, std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  const std::shared_ptr<const Bundle> bundle = Bundle::open(file_);
  ASSERT_NE(bundle, nullptr);
  EXPECT_THAT(bundle->changeable(), HasSubstr("chmod go-w"));
  EXPECT_EQ(bundle->open_packs(key_of(1), false).file, nullptr);
  EXPECT_FALSE(bundle->read_index({}, key_of(1)).index);
}

TEST_F(BundleTest, WhatItHoldsAsItsModelMustBeOne) {
  std::string bytes = bytes_of({model_});
  EXPECT_THAT(import_error(*Bundle::over(bytes, kName)), HasSubstr("InvalidModel: 'm.onnx' in"));
  const std::string inner = bytes_of({model_});
  std::string nested =
      bytes_of({{.kind = PartKind::Model, .name = "inner.bundle", .pieces = {inner}}});
  EXPECT_THAT(import_error(*Bundle::over(nested, kName)),
              HasSubstr("Corrupt: bundle in the test: expected an ONNX file as its model, found a "
                        "bundle in it"));
}

TEST_F(BundleTest, PacksAreTheirMakersAlone) {
  const std::string machine_code = "machine code";
  const std::string name = blob_pack_key("plug-in/kernel");
  const cache::StoredPack one{name, machine_code};
  const cache::PackPieces pieces({&one, 1}, processor_model(), key_of(1));
  std::string bytes =
      bytes_of({model_, {.kind = PartKind::Packs, .name = "", .pieces = pieces.pieces()}});
  const std::shared_ptr<const Bundle> bundle = Bundle::open(file_);
  const cache::PackFile::Opened foreign = bundle->open_packs(key_of(2), false);
  EXPECT_EQ(foreign.file, nullptr);
  EXPECT_THAT(foreign.reason, HasSubstr("another user's"));

  // Blobs are found as long as somebody holds the packs.
  StoredBlobs blobs([] { return std::filesystem::path(); });
  cache::PackFile::Opened own = bundle->open_packs(key_of(1), false);
  ASSERT_NE(own.file, nullptr) << own.reason;
  blobs.add_source(own.file);
  EXPECT_EQ(blobs.find("plug-in/kernel"), machine_code);
  EXPECT_EQ(blobs.find("plug-in/other"), std::nullopt);
  own.file.reset();
  EXPECT_EQ(blobs.find("plug-in/kernel"), std::nullopt);

  // One changed byte of machine code is not executed.
  const size_t at = bytes.rfind(machine_code);
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  const std::shared_ptr<const Bundle> changed = Bundle::over(bytes, kName);
  const cache::PackFile::Opened packs = changed->open_packs(key_of(1), false);
  ASSERT_NE(packs.file, nullptr) << "its table is as it was";
  blobs.add_source(packs.file);
  EXPECT_EQ(blobs.find("plug-in/kernel"), std::nullopt);
  EXPECT_TRUE(packs.file->is_damaged(name));
}

}  // namespace
}  // namespace tessera
