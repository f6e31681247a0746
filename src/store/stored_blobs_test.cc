#include "store/stored_blobs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/files/temporary_folder_test.h"
#include "base/threads/threads_test.h"

namespace tessera {
namespace {

class BlobFolder : public testing::Test {
 protected:
  std::filesystem::path only_file() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "kernels")) {
      if (entry.is_regular_file()) found = entry.path();
    }
    return found;
  }

  TemporaryFolder temporary_;
  // The folder of caches is made by the first that stores something.
  std::filesystem::path folder_ = temporary_.path() / "user";
};

TEST_F(BlobFolder, FindsBlobsByTheirKeys) {
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "looking writes nothing";
  const std::string binary("a\0b", 3);
  EXPECT_TRUE(keep_blob(folder_, "lib/a", binary));
  EXPECT_TRUE(keep_blob(folder_, "lib/empty", ""));
  EXPECT_EQ(find_blob(folder_, "lib/a"), binary);
  EXPECT_EQ(find_blob(folder_, "lib/empty"), "");
  EXPECT_EQ(find_blob(folder_, "lib/b"), std::nullopt);
  EXPECT_EQ(find_blob(folder_, "other/a"), std::nullopt);
  keep_blob(folder_, "lib/a", "new");
  EXPECT_EQ(find_blob(folder_, "lib/a"), "new");
}

TEST_F(BlobFolder, KeepsNothingIfThereIsNone) {
  EXPECT_FALSE(keep_blob("", "lib/a", "text"));
  EXPECT_EQ(find_blob("", "lib/a"), std::nullopt);
}

TEST_F(BlobFolder, MissesBlobsWithAnyDamagedByte) {
  keep_blob(folder_, "lib/a", "some text");
  const std::string sound = read_text(only_file());
  int found = 0;
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(only_file(), std::ios::binary) << damaged;
    const std::optional<std::string> blob = find_blob(folder_, "lib/a");
    // Some bytes are not read.
    if (blob) {
      EXPECT_EQ(*blob, "some text") << at;
    }
    found += blob ? 1 : 0;
  }
  EXPECT_LT(found, 120);
  std::ofstream(only_file(), std::ios::binary) << sound.substr(0, sound.size() - 1);
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  keep_blob(folder_, "lib/a", "some text");
  EXPECT_EQ(find_blob(folder_, "lib/a"), "some text") << "stored again";
}

TEST_F(BlobFolder, MissesBlobsOfAnotherUser) {
  keep_blob(folder_, "lib/a", "some text");
  std::filesystem::remove(folder_ / "key");
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  keep_blob(folder_, "lib/b", "makes a key");
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
}

TEST_F(BlobFolder, TakesManyWritersAtOnce) {
  run_at_once(4, [&](int /*thread*/) {
    for (int round = 0; round < 10; ++round) keep_blob(folder_, "lib/a", "text");
  });
  EXPECT_EQ(find_blob(folder_, "lib/a"), "text");
}

TEST_F(BlobFolder, GetsBlobsAtOnceWhileThatIsPermitted) {
  StoredBlobs blobs([this] { return folder_; });
  EXPECT_FALSE(blobs.keep_new("lib/a", "text"));
  EXPECT_NE(blobs.try_claim("lib/a"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder_));
  std::shared_ptr<const void> permit = blobs.permit_storing();
  EXPECT_TRUE(blobs.keep_new("lib/a", "text"));
  EXPECT_EQ(blobs.find("lib/a"), "text");
  permit.reset();
  EXPECT_FALSE(blobs.keep_new("lib/b", "text"));
}

// Two stores are as good as two processes.
TEST_F(BlobFolder, LetsOneProcessMakeABlobAtATime) {
  StoredBlobs mine([this] { return folder_; });
  StoredBlobs theirs([this] { return folder_; });
  const auto may_store = std::pair(mine.permit_storing(), theirs.permit_storing());
  BlobClaim claim = mine.try_claim("lib/a");
  EXPECT_NE(claim, nullptr);
  EXPECT_EQ(theirs.try_claim("lib/a"), nullptr);
  EXPECT_NE(theirs.try_claim("lib/b"), nullptr);
  claim.reset();
  EXPECT_NE(theirs.try_claim("lib/a"), nullptr);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_NE(entry.path().extension(), ".lock");
  }
}

TEST_F(BlobFolder, ForgetsClaimsOfAKilledProcess) {
  StoredBlobs blobs([this] { return folder_; });
  const std::shared_ptr<const void> may_store = blobs.permit_storing();
  std::array<int, 2> claimed = {};
  ASSERT_EQ(::pipe(claimed.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const BlobClaim claim = blobs.try_claim("lib/a");
    [[maybe_unused]] const ssize_t written = ::write(claimed[1], "c", claim == nullptr ? 0 : 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(claimed[0], &byte, 1), 1);
  EXPECT_EQ(blobs.try_claim("lib/a"), nullptr);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NE(blobs.try_claim("lib/a"), nullptr);
}

TEST_F(BlobFolder, LetsEveryoneMakeABlobIfItCannotBeLocked) {
  std::ofstream(folder_) << "a file where the folder should be";
  StoredBlobs blobs([this] { return folder_; });
  const std::shared_ptr<const void> may_store = blobs.permit_storing();
  EXPECT_NE(blobs.try_claim("lib/a"), nullptr);
  EXPECT_FALSE(blobs.keep_new("lib/a", "text"));
}

// The limits of the user's folder hold for blobs too.
TEST_F(BlobFolder, LosesTheOldestBlobsBeyondItsLimits) {
  StoredBlobs blobs([this] { return folder_; });
  blobs.keep({{"lib/old", "text"}});
  const auto long_ago =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 400);
  const std::filesystem::path old = only_file();
  std::filesystem::last_write_time(old, long_ago);
  std::filesystem::last_write_time(old.parent_path(), long_ago);
  blobs.keep({});
  EXPECT_EQ(std::filesystem::exists(old), true) << "nothing was added";
  blobs.keep({{"lib/new", "text"}});
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_EQ(blobs.find("lib/new"), "text");
}

}  // namespace
}  // namespace tessera
