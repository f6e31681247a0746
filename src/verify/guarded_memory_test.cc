#include "verify/guarded_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::verification {
namespace {

TEST(GuardedMemory, IsAlignedAsAskedAndNoMore) {
  for (const int64_t alignment : {1, 64, 4096}) {
    const GuardedMemory memory(100, alignment, 0);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    EXPECT_EQ(address % static_cast<uintptr_t>(alignment), 0U);
    EXPECT_NE(address % static_cast<uintptr_t>(2 * alignment), 0U);
  }
}

TEST(GuardedMemory, ToleratesWritesInside) {
  const GuardedMemory memory(3, 64, 7);
  EXPECT_EQ(memory.contents()[2], 7);
  memory.data()[0] = memory.data()[2] = 1;
  EXPECT_EQ(memory.explain_damage(), "");
}

TEST(GuardedMemory, SeesEveryByteBeside) {
  for (const int64_t bytes : {0, 1, 130}) {
    for (const int64_t offset : {-GuardedMemory::kGuardBytes, int64_t{-1}, bytes,
                                 bytes + GuardedMemory::kGuardBytes - 1}) {
      const GuardedMemory memory(bytes, 64, 0);
      memory.data()[offset] = static_cast<char>(memory.data()[offset] + 1);
      EXPECT_NE(memory.explain_damage(), "") << bytes << " " << offset;
    }
  }
  const GuardedMemory memory(128, 64, 0);
  memory.data()[129] = 0;
  EXPECT_EQ(memory.explain_damage(), "writes up to byte 130 of 128");
  memory.data()[-3] = 0;
  EXPECT_EQ(memory.explain_damage(), "writes 3 bytes before its start");
}

TEST(GuardedMemory, BetweenPagesShowsWhoWritesBesideIt) {
  GuardPagePool pages;
  for (const int64_t bytes : {0, 1, 48, 64, 1000, 4096, 5000}) {
    const GuardedMemory memory(bytes, 64, 0xFF, &pages);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0U);
    EXPECT_EQ(memory.explain_damage(), "");
    if (bytes % 64 == 0) continue;
    memory.data()[bytes] = 7;
    EXPECT_EQ(memory.explain_damage(),
              "writes up to byte " + std::to_string(bytes + 1) + " of " + std::to_string(bytes));
  }
}

TEST(GuardedMemoryDeathTest, BetweenPagesEndsWhoGoesTooFar) {
  GuardPagePool pages;
  GuardedMemory memory(128, 64, 0xFF, &pages);
  volatile char* data = memory.data();
  EXPECT_DEATH(data[128] = 7, "");
  EXPECT_DEATH(static_cast<void>(data[128]), "");
  memory.forbid_writing();
  EXPECT_DEATH(data[0] = 7, "");
}

constexpr int64_t kPiece = RepeatedMemory::kPieceBytes;

std::vector<char> pattern() {
  std::vector<char> bytes(static_cast<size_t>(kPiece));
  for (size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(index * 3);
  return bytes;
}

TEST(RepeatedMemory, RepeatsThePatternUpToItsEnd) {
  const std::vector<char> expected = pattern();
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 5 * kPiece + 4097}) {
    const RepeatedMemory memory(bytes, expected);
    for (int64_t at = 0; at < bytes; at += 1023) {
      ASSERT_EQ(memory.data()[at], expected[static_cast<size_t>(at % kPiece)]) << bytes;
    }
    if (bytes > 0) {
      EXPECT_EQ(memory.data()[bytes - 1], expected[static_cast<size_t>((bytes - 1) % kPiece)]);
    }
    EXPECT_EQ(memory.explain_damage(), "");
  }
}

TEST(RepeatedMemory, DetectsEachByteThatIsWrittenBeside) {
  const std::vector<char> contents = pattern();
  for (const int64_t bytes : {int64_t{0}, int64_t{2}, kPiece, 2 * kPiece + 3}) {
    for (const int64_t at : {int64_t{-4096}, int64_t{-1}, bytes, bytes + 13, bytes + 4095}) {
      const RepeatedMemory memory(bytes, contents);
      memory.data()[at] = static_cast<char>(memory.data()[at] + 1);
      EXPECT_NE(memory.explain_damage(), "") << bytes << ", " << at;
    }
  }
}

TEST(RepeatedMemory, TakesPagesOfOnePieceOnly) {
  constexpr int64_t kBytes = int64_t{8} << 30;
  const RepeatedMemory memory(kBytes, pattern());
  memory.data()[kBytes - 1] = 5;
  EXPECT_EQ(memory.data()[kPiece - 1], 5);
  EXPECT_EQ(memory.explain_damage(), "");
}

}  // namespace

}  // namespace tessera::verification
