#include "base/files/writable_path.h"

#include <unistd.h>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

using testing::EndsWith;

class WritablePath : public testing::Test {
 protected:
  WritablePath() { temporary_.write("file", "x"); }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(WritablePath, ExplainsFiles) {
  EXPECT_EQ(explain_unwritable_file(folder_ / "new"), "");
  EXPECT_EQ(explain_unwritable_file(folder_ / "file"), "");
  EXPECT_EQ(explain_unwritable_file("new"), "") << "in the working folder";
  EXPECT_EQ(explain_unwritable_file("/dev/null"), "");
  EXPECT_EQ(explain_unwritable_file(folder_ / "out" / "new"),
            "the folder '" + (folder_ / "out").string() + "' does not exist; create it first");
  EXPECT_THAT(explain_unwritable_file("absent/new"), HasSubstr("the folder 'absent' does not"));
  EXPECT_THAT(explain_unwritable_file(folder_), EndsWith("' is a folder, not a file"));
  EXPECT_THAT(explain_unwritable_file(folder_ / "file" / "new"),
              EndsWith("file' is a file, not a folder"));
  EXPECT_THAT(explain_unwritable_file(folder_ / "file" / "a" / "new"),
              EndsWith("file' is a file, not a folder"));
  EXPECT_NE(explain_unwritable_file(folder_ / std::string(300, 'n')), "");
  EXPECT_NE(explain_unwritable_file(folder_ / "new" / ""), "");
}

TEST_F(WritablePath, ExplainsFoldersThatAreMadeWhereTheyAreMissing) {
  EXPECT_EQ(explain_unwritable_folder(folder_), "");
  EXPECT_EQ(explain_unwritable_folder(folder_ / "a" / "b"), "");
  EXPECT_EQ(explain_unwritable_folder("a"), "");
  EXPECT_THAT(explain_unwritable_folder(folder_ / "file"),
              EndsWith("file' is a file, not a folder"));
  EXPECT_THAT(explain_unwritable_folder(folder_ / "file" / "in"),
              EndsWith("file' is a file, not a folder"));
}

TEST_F(WritablePath, ExplainsFoldersThatLookMissingButCannotBeMade) {
  std::filesystem::create_symlink("nowhere", folder_ / "dangling");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  std::filesystem::create_symlink(folder_, folder_ / "fine");
  EXPECT_THAT(explain_unwritable_folder(folder_ / "dangling"), EndsWith("leads nowhere"));
  EXPECT_THAT(explain_unwritable_folder(folder_ / "dangling" / "in"), HasSubstr("leads nowhere"));
  EXPECT_NE(explain_unwritable_folder(folder_ / "loop"), "");
  EXPECT_NE(explain_unwritable_folder(folder_ / "loop" / "in"), "");
  EXPECT_EQ(explain_unwritable_folder(folder_ / "fine"), "");
  EXPECT_EQ(explain_unwritable_folder(folder_ / "fine" / "in"), "");
  EXPECT_THAT(explain_unwritable_folder(folder_ / std::string(300, 'n')), HasSubstr("too long"));
}

TEST_F(WritablePath, ExplainsFoldersThatAreClosed) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is closed to root";
  std::filesystem::permissions(
      folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THAT(explain_unwritable_file(folder_ / "new"), HasSubstr("Permission denied"));
  EXPECT_THAT(explain_unwritable_folder(folder_ / "new"), HasSubstr("Permission denied"));
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace tessera
