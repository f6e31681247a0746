#include "verify/guarded_memory.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace tessera::verification
