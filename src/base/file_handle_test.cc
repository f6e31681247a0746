#include "base/file_handle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tessera {
namespace {

namespace fs = std::filesystem;

class OpenWithoutLinks : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tessera_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    fs::create_directories(root_ / "folder" / "inner");
    std::ofstream(root_ / "folder" / "inner" / "file") << "right";
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
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
