#include "base/files/file_handle.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/files/temporary_folder_test.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class OpenWithoutLinks : public testing::Test {
 protected:
  OpenWithoutLinks() {
    fs::create_directories(root_ / "folder" / "inner");
    temporary_.write("folder/inner/file", "right");
  }

  const TemporaryFolder temporary_;
  const fs::path root_ = temporary_.path();
};

TEST_F(OpenWithoutLinks, OpensWhatThePathNames) {
  const FileHandle file = open_without_links(root_ / "folder" / "inner" / "file");
  ASSERT_TRUE(file.is_open());
  std::string bytes(5, '\0');
  EXPECT_EQ(::read(file.get(), bytes.data(), bytes.size()), 5);
  EXPECT_EQ(bytes, "right");
}

TEST_F(OpenWithoutLinks, SaysWhatIsMissing) {
  EXPECT_FALSE(open_without_links(root_ / "none" / "file").is_open());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(open_without_links("relative/file").is_open());
}

TEST_F(OpenWithoutLinks, FollowsNoLinkToAFile) {
  fs::create_symlink(root_ / "folder" / "inner" / "file", root_ / "link");
  EXPECT_FALSE(open_without_links(root_ / "link").is_open());
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(OpenWithoutLinks, FollowsNoLinkToAFolderOnTheWay) {
  fs::create_directory_symlink(root_ / "folder", root_ / "away");
  EXPECT_FALSE(open_without_links(root_ / "away" / "inner" / "file").is_open());
  EXPECT_EQ(errno, ENOTDIR);
}

}  // namespace
}  // namespace tessera
