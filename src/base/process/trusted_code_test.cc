#include "base/process/trusted_code.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/files/temporary_folder_test.h"

namespace tessera {
namespace {

constexpr uid_t kStranger = 12345;

// A plug-in in a folder of its own below the system's temporary folder.
class TrustedCode : public testing::Test {
 protected:
  TrustedCode() {
    std::filesystem::create_directory(folder_);
    ::chmod(folder_.c_str(), 0755);
    write_text(file_, "code");
  }

  std::string refusal() const { return look_at_code(file_, owners_).refusal; }

  const TemporaryFolder temporary_;
  const std::filesystem::path root_ = temporary_.path();
  const std::filesystem::path folder_ = root_ / "lib";
  const std::filesystem::path file_ = folder_ / "plugin.so";
  std::vector<uid_t> owners_ = {::geteuid(), 0};
};

TEST_F(TrustedCode, IsThatOfThisUserAndOfTheOwnerOfTheProgram) {
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(look_at_code(file_, trusted_owners()).refusal, "");
  EXPECT_EQ(look_at_code("/proc/self/exe", trusted_owners()).refusal, "");
}

TEST_F(TrustedCode, IsLookedAtWhereLinksLead) {
  const std::filesystem::path link = root_ / "link.so";
  std::filesystem::create_symlink(file_, link);
  const FoundCode found = look_at_code(link, owners_);
  EXPECT_EQ(found.refusal, "");
  EXPECT_EQ(found.path, file_);
}

TEST_F(TrustedCode, IsNoFileThatOthersMayWriteTo) {
  ::chmod(file_.c_str(), 0646);
  EXPECT_NE(refusal().find("others than its owner may write to '" + file_.string()),
            std::string::npos)
      << refusal();
}

TEST_F(TrustedCode, IsInNoFolderThatOthersMayWriteTo) {
  ::chmod(folder_.c_str(), 0757);
  EXPECT_NE(refusal().find("may write to the folder '" + folder_.string()), std::string::npos)
      << refusal();
  EXPECT_NE(explain_untrusted_folder(folder_, owners_), "");
  // With the sticky bit, others cannot replace files that are not theirs.
  ::chmod(folder_.c_str(), 01757);
  EXPECT_EQ(refusal(), "");
  ::chmod(folder_.c_str(), 0755);
  ::chmod(root_.c_str(), 0707);
  EXPECT_NE(refusal().find("may write to the folder '" + root_.string()), std::string::npos)
      << refusal();
}

TEST_F(TrustedCode, IsARegularFile) {
  EXPECT_NE(look_at_code(folder_, owners_).refusal.find("no regular file"), std::string::npos);
  EXPECT_NE(look_at_code(root_ / "none", owners_).refusal.find("No such file"), std::string::npos);
}

class CodeOfStrangers : public TrustedCode {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
    TrustedCode::SetUp();
  }
};

TEST_F(CodeOfStrangers, IsRefused) {
  ASSERT_EQ(::chown(file_.c_str(), kStranger, kStranger), 0);
  EXPECT_NE(refusal().find("belongs to another user (number 12345)"), std::string::npos)
      << refusal();
  owners_.push_back(kStranger);
  EXPECT_EQ(refusal(), "");
}

TEST_F(CodeOfStrangers, IsWhatLiesInTheirFolders) {
  ASSERT_EQ(::chown(root_.c_str(), kStranger, kStranger), 0);
  EXPECT_NE(refusal().find("'" + root_.string() + "' belongs to another user"), std::string::npos)
      << refusal();
  EXPECT_NE(explain_untrusted_folder(folder_, owners_), "");
}

TEST_F(CodeOfStrangers, IsWhatAGroupMayWriteToUnlessItIsTheOwnersOwn) {
  ASSERT_EQ(::chown(file_.c_str(), 0, kStranger), 0);
  ::chmod(file_.c_str(), 0664);
  EXPECT_NE(refusal(), "");
  ASSERT_EQ(::chown(file_.c_str(), 0, 0), 0);
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace tessera
