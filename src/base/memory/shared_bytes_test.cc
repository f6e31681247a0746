#include "base/memory/shared_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tessera/error.h"

namespace tessera {
namespace {

TEST(SharedArena, WhoReceivesItCannotChangeIt) {
  const std::string text = "text";
  const std::span<const char> blocks[] = {text};
  SharedArena arena;
  const SharedBytes shared = arena.store(blocks);
  EXPECT_EQ(::pwrite(shared.file.get(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(shared.file.get(), 0), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file.get(), 0),
            MAP_FAILED);
}

TEST(SharedArena, EachBlockHasPagesOfItsOwn) {
  const std::string text(5000, 'x');
  const std::span<const char> blocks[] = {text, {}, text};
  SharedArena arena;
  const SharedBytes shared = arena.store(blocks);
  EXPECT_EQ(shared.offsets, (std::vector<int64_t>{0, 8192, 12288}));
}

std::string read_at(const FileHandle& file, int64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  EXPECT_EQ(::pread(file.get(), text.data(), bytes, offset), static_cast<ssize_t>(bytes));
  return text;
}

TEST(SharedArena, HoldsTheNewestBlocksInTheSamePages) {
  SharedArena arena;
  for (const size_t bytes : {size_t{100000}, size_t{10}, size_t{5000}, size_t{300000}}) {
    const std::string first(bytes, static_cast<char>('a' + bytes % 7));
    const std::string second = "other";
    const std::span<const char> blocks[] = {first, second};
    const SharedBytes shared = arena.store(blocks);
    const auto rounded = static_cast<int64_t>((bytes + 63) / 64 * 64);
    EXPECT_EQ(read_at(shared.file, shared.offsets[1] - rounded, bytes), first);
    EXPECT_EQ(read_at(shared.file, shared.offsets[1] + 4096 - 64, second.size()), second);
  }
}

TEST(SharedArena, GivesBackWhatIsMuchMoreThanNeeded) {
  SharedArena arena;
  const std::string large(size_t{80} << 20, 'x');
  const std::span<const char> blocks[] = {large};
  arena.store(blocks);
  const std::span<const char> few[] = {std::span(large).first(10)};
  EXPECT_EQ(::lseek(arena.store(few).file.get(), 0, SEEK_END), 4096);
}

TEST(SharedArena, SaysThatTheMemoryDoesNotSuffice) {
  SharedArena arena;
  const std::span<const char> blocks[] = {{static_cast<const char*>(nullptr), size_t{1} << 60}};
  EXPECT_THROW(arena.store(blocks), Error);
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
