#include "store/stored_blobs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cache/temporary_folder_test.h"

namespace tessera {
namespace {

class StoredBlobs : public testing::Test {
 protected:
  std::filesystem::path only_file() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "kernels")) {
      if (entry.is_regular_file()) found = entry.path();
    }
    return found;
  }

  cache::TemporaryFolder temporary_;
  // The folder of caches is made by the first that stores something.
  std::filesystem::path folder_ = temporary_.path() / "user";
};

TEST_F(StoredBlobs, AreFoundByTheirKeys) {
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "looking writes nothing";
  const std::string binary("a\0b", 3);
  keep_blobs(folder_, {{"lib/a", binary}, {"lib/empty", ""}});
  EXPECT_EQ(find_blob(folder_, "lib/a"), binary);
  EXPECT_EQ(find_blob(folder_, "lib/empty"), "");
  EXPECT_EQ(find_blob(folder_, "lib/b"), std::nullopt);
  EXPECT_EQ(find_blob(folder_, "other/a"), std::nullopt);
  keep_blobs(folder_, {{"lib/a", "new"}});
  EXPECT_EQ(find_blob(folder_, "lib/a"), "new");
}

TEST_F(StoredBlobs, WithoutAFolderAreNotKept) {
  keep_blobs("", {{"lib/a", "text"}});
  EXPECT_EQ(find_blob("", "lib/a"), std::nullopt);
}

TEST_F(StoredBlobs, AnyDamagedByteIsAMiss) {
  keep_blobs(folder_, {{"lib/a", "some text"}});
  std::ifstream stream(only_file(), std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(stream), {}};
  int found = 0;
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(only_file(), std::ios::binary) << damaged;
    const std::optional<std::string> blob = find_blob(folder_, "lib/a");
    // Some bytes are not read.
    if (blob) EXPECT_EQ(*blob, "some text") << at;
    found += blob ? 1 : 0;
  }
  EXPECT_LT(found, 120);
  std::ofstream(only_file(), std::ios::binary) << sound.substr(0, sound.size() - 1);
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  keep_blobs(folder_, {{"lib/a", "some text"}});
  EXPECT_EQ(find_blob(folder_, "lib/a"), "some text") << "stored again";
}

TEST_F(StoredBlobs, OfAnotherUserAreAMiss) {
  keep_blobs(folder_, {{"lib/a", "some text"}});
  std::filesystem::remove(folder_ / "key");
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
  keep_blobs(folder_, {{"lib/b", "makes a key"}});
  EXPECT_EQ(find_blob(folder_, "lib/a"), std::nullopt);
}

TEST_F(StoredBlobs, ManyWritersDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int round = 0; round < 10; ++round) keep_blobs(folder_, {{"lib/a", "text"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(find_blob(folder_, "lib/a"), "text");
}

}  // namespace
}  // namespace tessera
