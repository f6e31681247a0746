#include "base/arena_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace tessera {
namespace {

TEST(ArenaMemory, IsZeroAlignedAndWritable) {
  ThreadPool pool(2);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, (int64_t{5} << 20) + 5}) {
    const ArenaMemory arena(bytes, pool);
    ASSERT_FALSE(arena.is_null());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % (bytes > 4096 ? 2 << 20 : 4096), 0U);
    for (int64_t index = 0; index < bytes; index += 1000) {
      EXPECT_EQ(arena.data()[index], 0);
      arena.data()[index] = 1;
    }
    if (bytes > 0) arena.data()[bytes - 1] = 1;
  }
}

TEST(ArenaMemory, IsNullWhereThereIsNone) {
  ThreadPool pool(2);
  EXPECT_TRUE(ArenaMemory(int64_t{1} << 60, pool).is_null());
  EXPECT_TRUE(ArenaMemory().is_null());
}

TEST(ArenaMemory, Moves) {
  ThreadPool pool(1);
  ArenaMemory first(100, pool);
  char* data = first.data();
  ArenaMemory second(std::move(first));
  EXPECT_EQ(second.data(), data);
  ArenaMemory third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
}

TEST(ArenaMemory, IsReplacedByOtherMemoryOrStays) {
  ThreadPool pool(2);
  ArenaMemory arena(100, pool);
  EXPECT_TRUE(arena.replace(int64_t{3} << 20, pool));
  EXPECT_EQ(arena.bytes(), int64_t{3} << 20);
  arena.data()[(3 << 20) - 1] = 7;
  char* data = arena.data();
  EXPECT_FALSE(arena.replace(int64_t{1} << 60, pool));
  EXPECT_EQ(arena.data(), data);
  EXPECT_EQ(arena.bytes(), int64_t{3} << 20);
  EXPECT_EQ(arena.data()[(3 << 20) - 1], 7);
}

}  // namespace
}  // namespace tessera
