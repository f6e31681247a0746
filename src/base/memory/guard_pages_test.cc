#include "base/memory/guard_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/memory/shared_bytes.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The sanitizer reports the fault in its own words.
#ifdef TESSERA_SANITIZED
#define EXPECT_FAULT(statement) EXPECT_DEATH(statement, "")
#else
#define EXPECT_FAULT(statement) EXPECT_EXIT(statement, testing::KilledBySignal(SIGSEGV), "")
#endif

volatile std::byte* at(const GuardPages& pages, int64_t offset) { return pages.data() + offset; }

TEST(GuardPages, HoldsWhatItIsAskedFor) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 100000}) {
    const GuardPages pages(bytes);
    EXPECT_EQ(pages.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.data()) % GuardPages::kAlignmentBytes, 0U);
    EXPECT_LT(pages.slack_after(), bytes == 0 ? 4097 : GuardPages::kAlignmentBytes);
    std::memset(pages.data() - pages.slack_before(), 1, static_cast<size_t>(pages.slack_before()));
    std::memset(pages.data(), 2, static_cast<size_t>(bytes + pages.slack_after()));
  }
}

TEST(FencedPagesDeathTest, EndsWhoTouchesWhatIsBeside) {
  const GuardPages pages(1000);
  EXPECT_FAULT(*at(pages, pages.bytes() + pages.slack_after()) = std::byte{1});
  EXPECT_FAULT(*at(pages, -pages.slack_before() - 1) = std::byte{1});
  EXPECT_FAULT(static_cast<void>(*at(pages, pages.bytes() + pages.slack_after())));
}

TEST(FencedPagesDeathTest, EndsWhoWritesWhereThatIsForbidden) {
  GuardPages pages(1000);
  *at(pages, 5) = std::byte{7};
  pages.forbid_writing();
  EXPECT_EQ(std::to_integer<int>(pages.data()[5]), 7);
  EXPECT_FAULT(*at(pages, 5) = std::byte{8});
}

TEST(GuardPages, MovesWithItsMemory) {
  GuardPages first(100);
  *at(first, 0) = std::byte{9};
  GuardPages second(std::move(first));
  GuardPages third(200);
  third = std::move(second);
  EXPECT_EQ(third.bytes(), 100);
  EXPECT_EQ(std::to_integer<int>(third.data()[0]), 9);
}

TEST(GuardPages, RefusesMoreThanThereIs) { EXPECT_THROW(GuardPages(int64_t{1} << 60), Error); }

TEST(GuardPagePool, UsesPagesAgainForTheSameNumberOfThem) {
  GuardPagePool pool;
  GuardPages first = pool.take(5000);
  const std::byte* start = first.data() - first.slack_before();
  first.forbid_writing();
  pool.give_back(std::move(first));
  const GuardPages other = pool.take(100);
  EXPECT_NE(other.data() - other.slack_before(), start);
  GuardPages again = pool.take(8000);
  EXPECT_EQ(again.data() - again.slack_before(), start);
  EXPECT_EQ(again.bytes(), 8000);
  EXPECT_LT(again.slack_after(), GuardPages::kAlignmentBytes);
  std::memset(again.data(), 1, 8000);
  EXPECT_NE(pool.take(5000).data() - again.slack_before(), start);
}

TEST(GuardPagePool, KeepsNoMoreThanItMay) {
  GuardPagePool pool;
  // More than one of these is not kept.
  const int64_t bytes = int64_t{200} << 20;
  pool.give_back(pool.take(bytes));
  pool.give_back(pool.take(bytes + 8192));
  GuardPages again = pool.take(bytes);
  EXPECT_EQ(again.bytes(), bytes);
}

TEST(FencedPagesDeathTest, PagesThatAreUsedAgainAreFenced) {
  GuardPagePool pool;
  pool.give_back(pool.take(5000));
  const GuardPages again = pool.take(6000);
  EXPECT_FAULT(*at(again, again.bytes() + again.slack_after()) = std::byte{1});
  EXPECT_FAULT(*at(again, -again.slack_before() - 1) = std::byte{1});
}

TEST(FencedPagesDeathTest, MapsWhatIsSharedToBeReadOnly) {
  const std::string first(5000, 'a');
  const std::string second = "second";
  const std::span<const char> blocks[] = {first, {}, second};
  SharedArena arena;
  const SharedBytes shared = arena.store(blocks);
  const GuardPages found(5000, shared.file.get(), shared.offsets[0]);
  const GuardPages last(6, shared.file.get(), shared.offsets[2]);
  EXPECT_EQ(std::memcmp(found.data(), first.data(), first.size()), 0);
  EXPECT_EQ(std::memcmp(last.data(), second.data(), second.size()), 0);
  EXPECT_LT(last.slack_after(), GuardPages::kAlignmentBytes);
  EXPECT_FAULT(*at(last, 0) = std::byte{1});
  EXPECT_FAULT(static_cast<void>(*at(last, 64)));
}

TEST(GuardPages, RefusesWhatAFileDoesNotHave) {
  const std::string text = "text";
  const std::span<const char> blocks[] = {text};
  SharedArena arena;
  const SharedBytes shared = arena.store(blocks);
  EXPECT_THROW(GuardPages(5000, shared.file.get(), 0), Error);
  EXPECT_THROW(GuardPages(4, shared.file.get(), 4096), Error);
  EXPECT_THROW(GuardPages(4, shared.file.get(), -4096), Error);
  EXPECT_THROW(GuardPages(4, -1, 0), Error);
  for (const int64_t bytes :
       {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_THROW(GuardPages(bytes, shared.file.get(), 0), Error) << bytes;
  }
}

}  // namespace
}  // namespace tessera
