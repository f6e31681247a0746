#include "cache/user_key.h"

#include <sys/stat.h>

#include <vector>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/threads/threads_test.h"

namespace tessera::cache {
namespace {

constexpr std::string_view kText = "what is vouched for";

TEST(UserKey, IsMadeOnceForItsOwnerAlone) {
  const TemporaryFolder folder;
  const FoundKey first = find_or_make_key(folder.path());
  ASSERT_TRUE(first.key) << first.reason;
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(status.st_size, 32);
  EXPECT_EQ(folder.count(), 1U);
  const FoundKey second = find_or_make_key(folder.path());
  ASSERT_TRUE(second.key);
  EXPECT_EQ(first.key->authenticate(kText), second.key->authenticate(kText));
}

TEST(UserKey, IsOneForAllWhoComeAtOnce) {
  const TemporaryFolder folder;
  std::vector<Mac> macs(8);
  for_each_at_once(macs, [&](Mac& mac) {
    const FoundKey found = find_or_make_key(folder.path());
    if (found.key) mac = found.key->authenticate(kText);
  });
  const FoundKey found = find_or_make_key(folder.path());
  ASSERT_TRUE(found.key);
  for (const Mac& mac : macs) EXPECT_EQ(mac, found.key->authenticate(kText));
}

TEST(UserKey, OneThatOthersCouldReadOrThatIsDamagedIsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(find_or_make_key(folder.path()).key);
  for (const mode_t mode : {0640, 0604, 0620}) {
    ::chmod((folder / "key").c_str(), mode);
    EXPECT_THAT(find_or_make_key(folder.path()).reason, HasSubstr("mode 0600"));
  }
  ::chmod((folder / "key").c_str(), 0600);
  ::truncate((folder / "key").c_str(), 31);
  EXPECT_THAT(find_or_make_key(folder.path()).reason, HasSubstr("damaged"));
  EXPECT_NE(find_or_make_key(folder / "none").reason, "");
}

TEST(UserKey, APipeInItsPlaceIsRefusedAtOnce) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "key").c_str(), 0600), 0);
  EXPECT_THAT(find_or_make_key(folder.path()).reason, HasSubstr("is no file"));
}

TEST(UserKey, AnotherKeyOrTextGivesAnotherCode) {
  const UserKey key({1});
  EXPECT_TRUE(is_equal(key.authenticate(kText), key.authenticate(kText)));
  EXPECT_FALSE(is_equal(key.authenticate(kText), UserKey({2}).authenticate(kText)));
  EXPECT_FALSE(is_equal(key.authenticate(kText), key.authenticate(std::string_view("what"))));
}

}  // namespace
}  // namespace tessera::cache
