#include "cli/output/staged_files.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"

namespace tessera::cli {
namespace {

class StagedFilesTest : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(StagedFilesTest, AppearOnCommit) {
  const std::filesystem::path file = folder_ / "new" / "inner" / "a.json";
  StagedFiles files;
  files.write_text(file, "{}");
  EXPECT_FALSE(std::filesystem::exists(file));
  files.commit();
  EXPECT_EQ(read_text(file), "{}");
}

TEST_F(StagedFilesTest, DisappearWithoutCommit) {
  std::ofstream(folder_ / "old.json") << "old";
  {
    StagedFiles files;
    files.write_text(folder_ / "old.json", "new");
    files.write_text(folder_ / "new" / "inner" / "a.json", "{}");
    std::ofstream(files.stage(folder_ / "new" / "b.npy")) << "half";
  }
  EXPECT_EQ(read_text(folder_ / "old.json"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
}

TEST_F(StagedFilesTest, ReplaceWhatWasThere) {
  std::ofstream(folder_ / "a.json") << "something longer";
  StagedFiles files;
  files.write_text(folder_ / "a.json", "new");
  files.commit();
  EXPECT_EQ(read_text(folder_ / "a.json"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(StagedFilesTest, FailuresSayWhoseFaultTheyAre) {
  StagedFiles files;
  std::ofstream(folder_ / "file") << "not a folder";
  EXPECT_EQ(kind_of_error([&] { files.write_text("/dev/full", "text"); }), ErrorKind::DeviceFailed);
  EXPECT_EQ(kind_of_error([&] { files.write_text(folder_ / "file" / "a", "text"); }),
            ErrorKind::DeviceFailed);
  EXPECT_EQ(kind_of_error([&] { files.write_tensor("/dev/full", Tensor(DataType::Bool, {0})); }),
            ErrorKind::DeviceFailed);
  EXPECT_EQ(kind_of_error([&] { files.write_text(folder_, "text"); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of_error([&] { files.write_text("/dev/null", "text"); }), std::nullopt);
  files.commit();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace tessera::cli
