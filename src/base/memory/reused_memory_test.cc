#include "base/memory/reused_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/parallel.h"
#include "tessera/error.h"

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

const std::vector<int64_t> kDims = {64, 1024};

TEST(RecycledMemory, IsUsedAgainOnceNobodyRefersToIt) {
  RecycledMemory memory;
  std::optional<Tensor> first = memory.take(DataType::Float32, kDims);
  const void* const data = first->data();
  EXPECT_TRUE(first->is_sole_owner());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kTensorAlignmentBytes, 0U);
  std::optional<Tensor> copy = first->reshaped({1024, 64});
  first.reset();
  const Tensor other = memory.take(DataType::Float32, kDims);
  EXPECT_NE(other.data(), data);
  std::thread([&] { copy.reset(); }).join();
  EXPECT_EQ(memory.take(DataType::Float32, kDims).data(), data);
}

TEST(RecycledMemory, IsOfOneTypeAndSize) {
  RecycledMemory memory;
  memory.take(DataType::Float32, kDims);
  EXPECT_EQ(memory.take(DataType::Int32, kDims).type(), DataType::Int32);
  EXPECT_EQ(memory.take(DataType::Int32, {1 << 17}).bytes(), 1 << 19);
  EXPECT_EQ(memory.take(DataType::Int32, {3}).bytes(), 12);
}

TEST(RecycledMemory, IsComparedWithWhatIsAvailable) {
  RecycledMemory memory([] { return int64_t{20} << 20; });
  const std::vector<int64_t> fits = {16 << 20};
  const std::vector<int64_t> is_too_large = {21 << 20};
  Tensor first = memory.take(DataType::UInt8, fits);
  EXPECT_THROW(memory.take(DataType::UInt8, is_too_large), Error);
  EXPECT_NO_THROW(memory.take(DataType::UInt8, fits));
  RecycledMemory full([] { return int64_t{0}; });
  EXPECT_NO_THROW(full.take(DataType::Float32, kDims)) << "too small to ask";
}

TEST(RecycledMemory, MayEndBeforeItsTensors) {
  Tensor tensor;
  {
    RecycledMemory memory;
    tensor = memory.take(DataType::Float32, kDims);
  }
  tensor.mutable_as<float>()[kDims[0] * kDims[1] - 1] = 1;
  EXPECT_TRUE(tensor.is_sole_owner());
}

}  // namespace

}  // namespace tessera
