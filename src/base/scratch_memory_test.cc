#include "base/scratch_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>

#include "base/parallel.h"

namespace tessera {
namespace {

TEST(ScratchMemory, GivesAlignedMemoryThatMayBeWritten) {
  ScratchMemory scratch;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{5} << 20}) {
    void* memory = scratch.allocate(bytes, 8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
    std::memset(memory, 7, bytes);
    scratch.deallocate(memory, bytes, 8);
  }
}

TEST(ScratchMemory, GivesNoMoreThanTheMachineHas) {
  ScratchMemory scratch([]() -> int64_t { return int64_t{20} << 20; });
  void* fits = scratch.allocate(size_t{18} << 20);
  EXPECT_THROW((void)scratch.allocate(size_t{21} << 20), std::bad_alloc);
  scratch.deallocate(fits, size_t{18} << 20);
}

TEST(ScratchMemory, GivesAgainWhatCameBack) {
  ScratchMemory scratch;
  void* first = scratch.allocate(100);
  void* second = scratch.allocate(100);
  EXPECT_NE(first, second);
  // Deallocates in another order than the reverse of allocation.
  scratch.deallocate(first, 100);
  void* third = scratch.allocate(128);
  EXPECT_EQ(third, first);
  scratch.deallocate(second, 100);
  scratch.deallocate(third, 128);
  void* other_size = scratch.allocate(129);
  EXPECT_NE(other_size, first);
  EXPECT_NE(other_size, second);
  scratch.deallocate(other_size, 129);
}

TEST(ScratchMemory, ServesAVectorThatGrows) {
  ScratchMemory scratch;
  uintptr_t address = 0;
  const auto grow = [&] {
    std::pmr::vector<int64_t> values(&scratch);
    for (int64_t value = 0; value < 1000; ++value) values.push_back(value);
    for (int64_t value = 0; value < 1000; ++value) {
      EXPECT_EQ(values[static_cast<size_t>(value)], value);
    }
    address = reinterpret_cast<uintptr_t>(values.data());
  };
  grow();
  const uintptr_t first = address;
  grow();
  EXPECT_EQ(address, first);
}

TEST(ScratchMemory, RefusesWhatNobodyHas) {
  ScratchMemory scratch;
  EXPECT_THROW((void)scratch.allocate(std::numeric_limits<size_t>::max()), std::bad_alloc);
#ifndef TESSERA_SANITIZED  // sanitizers end the process
  EXPECT_THROW((void)scratch.allocate(size_t{1} << 62), std::bad_alloc);
#endif
  void* memory = scratch.allocate(10);
  scratch.deallocate(memory, 10);
}

TEST(ScratchMemory, ServesSeveralThreads) {
  ScratchMemory scratch;
  ThreadPool pool(4);
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const std::pmr::vector<int64_t> values(static_cast<size_t>(1 + index % 50), index, &scratch);
      for (const int64_t value : values) ASSERT_EQ(value, index);
    }
  });
}

}  // namespace
}  // namespace tessera
