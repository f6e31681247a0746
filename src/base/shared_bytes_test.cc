#include "base/shared_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tessera/error.h"

namespace tessera {
namespace {

TEST(SharedBytes, NobodyCanChangeThem) {
  const std::string text = "text";
  const std::span<const char> blocks[] = {text};
  const SharedBytes shared = share_bytes(blocks);
  EXPECT_EQ(::pwrite(shared.file.get(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(shared.file.get(), 0), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file.get(), 0),
            MAP_FAILED);
}

TEST(SharedBytes, EachBlockHasPagesOfItsOwn) {
  const std::string text(5000, 'x');
  const std::span<const char> blocks[] = {text, {}, text};
  const SharedBytes shared = share_bytes(blocks);
  EXPECT_EQ(shared.offsets, (std::vector<int64_t>{0, 8192, 12288}));
}

TEST(SharedPage, BothSeeWhatOneWrites) {
  const SharedPage mine = SharedPage::make();
  const SharedPage other(mine.share());
  EXPECT_NE(mine.data(), other.data());
  EXPECT_EQ(*static_cast<int*>(other.data()), 0);
  *static_cast<int*>(other.data()) = 42;
  EXPECT_EQ(*static_cast<int*>(mine.data()), 42);
}

// Reading beyond the end of a file that another process has truncated would raise SIGBUS.
TEST(SharedPage, NobodyCanCutIt) {
  const SharedPage mine = SharedPage::make();
  const FileHandle other = mine.share();
  EXPECT_EQ(::ftruncate(other.get(), 0), -1);
  EXPECT_EQ(::ftruncate(other.get(), 1 << 20), -1);
}

TEST(SharedPage, RefusesWhatIsNoFile) { EXPECT_THROW(SharedPage{FileHandle(-1)}, Error); }

}  // namespace
}  // namespace tessera
