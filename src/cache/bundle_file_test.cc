#include "cache/bundle_file.h"

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera::cache {
namespace {

constexpr const char* kLocation = "bundle 'x'";

class BundleFileTest : public testing::Test {
 protected:
  std::string write(const std::vector<NewPart>& parts) {
    const ReplacedFile written = write_bundle(path_, "1.2.3", parts, [] {});
    EXPECT_EQ(written.refusal, "");
    return read_text(path_);
  }
  // All of reading that checks something.
  static std::string explain(const std::string& bytes) {
    const auto error =
        thrown_by([&] { check_parts(bytes, read_bundle_table(bytes, kLocation), kLocation); });
    if (!error) return "";
    EXPECT_NE(error->kind(), ErrorKind::Internal);
    EXPECT_THAT(error->what(), HasSubstr(kLocation));
    return error->what();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.bundle";
  const std::string large_ = std::string(10'000, 'w');
  const std::vector<NewPart> parts_ = {
      {.kind = PartKind::Model, .name = "m.onnx", .pieces = {"mod", "", "el"}},
      {.kind = PartKind::ExternalData, .name = "w.bin", .pieces = {large_}},
      {.kind = PartKind::ExternalData, .name = "empty.bin", .pieces = {}},
      {.kind = PartKind::Packs, .name = "", .pieces = {"packs"}}};
};

TEST_F(BundleFileTest, GivesWhatWasWritten) {
  const std::string bytes = write(parts_);
  EXPECT_TRUE(is_bundle(bytes));
  const BundleTable table = read_bundle_table(bytes, kLocation);
  EXPECT_EQ(table.version, "1.2.3");
  ASSERT_EQ(table.parts.size(), parts_.size());
  EXPECT_EQ(part_bytes(bytes, table.parts[0], kLocation), "model");
  EXPECT_EQ(table.parts[0].name, "m.onnx");
  EXPECT_EQ(part_bytes(bytes, table.parts[1], kLocation), large_);
  EXPECT_EQ(part_bytes(bytes, table.parts[2], kLocation), "");
  EXPECT_EQ(part_bytes(bytes, *table.find(PartKind::Packs), kLocation), "packs");
  EXPECT_EQ(table.find(PartKind::Index), nullptr);
  for (const BundlePart& part : table.parts) EXPECT_EQ(part.offset % 4096, 0U);
  EXPECT_EQ(explain(bytes), "");
}

TEST_F(BundleFileTest, EachChangedByteIsFound) {
  const std::string bytes = write(parts_);
  for (size_t at = 0; at < bytes.size(); at += at < 400 ? 1 : 37) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_NE(explain(changed), "") << "byte " << at;
  }
}

TEST_F(BundleFileTest, EachOtherLengthIsFound) {
  const std::string bytes = write(parts_);
  for (size_t length = 0; length < bytes.size(); length += length < 400 ? 1 : 101) {
    EXPECT_NE(explain(bytes.substr(0, length)), "") << length << " bytes";
  }
  EXPECT_THAT(explain(bytes + "x"),
              HasSubstr("Corrupt: bundle 'x': expected 20485 bytes, found 20486"));
}

TEST_F(BundleFileTest, ErrorsSayWhatToDo) {
  const std::string bytes = write(parts_);
  EXPECT_THAT(explain("ONNX"), HasSubstr("InvalidArgument: bundle 'x': expected a bundle"));
  std::string other_version = bytes;
  other_version[8] = 9;
  EXPECT_THAT(
      explain(other_version),
      HasSubstr("Unsupported: bundle 'x': expected version 1 of the format, found 9; make"));
  std::string damaged = bytes;
  damaged[bytes.size() - 1] ^= 1;
  EXPECT_THAT(explain(damaged), HasSubstr("expected packs as it was written, found other bytes; it "
                                          "is damaged: make the bundle again"));
}

TEST_F(BundleFileTest, PartsThatCannotBeAreRefused) {
  const NewPart model{.kind = PartKind::Model, .name = "m", .pieces = {"m"}};
  const NewPart packs{.kind = PartKind::Packs, .name = "", .pieces = {"p"}};
  const NewPart weights{.kind = PartKind::ExternalData, .name = "w", .pieces = {"w"}};
  EXPECT_THAT(explain(write({})), HasSubstr("expected a model as the first part"));
  EXPECT_THAT(explain(write({packs})), HasSubstr("expected a model as the first part"));
  EXPECT_THAT(explain(write({model, model})), HasSubstr("expected each part once"));
  EXPECT_THAT(explain(write({model, packs, weights})), HasSubstr("in the order of kinds"));
  EXPECT_THAT(explain(write({model, weights, weights})), HasSubstr("external data 'w'"));
}

TEST_F(BundleFileTest, AWriterThatIsStoppedLeavesNothing) {
  write(parts_);
  int calls = 0;
  const auto stop = [&calls] {
    if (++calls == 2) throw Error(ErrorKind::Cancelled, "", "enough");
  };
  EXPECT_THROW(write_bundle(path_, "2", parts_, stop), Error);
  EXPECT_EQ(folder_.count(), 1U) << "only the bundle of before";
  EXPECT_EQ(read_bundle_table(write(parts_), kLocation).version, "1.2.3");
}

}  // namespace
}  // namespace tessera::cache
