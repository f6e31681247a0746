#include "base/memory/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace tessera {
namespace {

TEST(Memory, IsNoMoreThanTheMachineHas) {
  const int64_t machine_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), machine_bytes);
}

TEST(Memory, ComparesSmallAllocationsWhenTheyAddUp) {
  MemoryCheck check([] { return int64_t{100}; });
  EXPECT_TRUE(check.allows(kLargeAllocationBytes - 1000)) << "small: not compared";
  EXPECT_TRUE(check.allows(900));
  EXPECT_TRUE(check.allows(100)) << "compared, and there is as much";
  EXPECT_TRUE(check.allows(kLargeAllocationBytes - 1));
  EXPECT_FALSE(check.allows(101)) << "compared";
  EXPECT_FALSE(check.allows(kLargeAllocationBytes));
  EXPECT_FALSE(check.allows(INT64_MAX));
}

TEST(Memory, KnowsTheMostThatWasResident) {
  constexpr int64_t kBytes = int64_t{48} << 20;
  const int64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0);
  {
    const std::vector<char> touched(static_cast<size_t>(before + kBytes), 1);
  }
  EXPECT_GE(peak_resident_bytes(), before + kBytes);
  EXPECT_GE(peak_resident_bytes(getpid()), before + kBytes);
  EXPECT_EQ(peak_resident_bytes(1 << 30), 0);
}

TEST(Memory, CountsWhatIsAllocated) {
#if defined(TESSERA_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "the allocator does not tell";
#endif
  constexpr size_t kBytes = size_t{24} << 20;
  const AllocatedMemory before = allocated_memory();
  {
    const std::vector<char> kept(kBytes, 1);
    const int64_t grown = grown_bytes(before, allocated_memory());
    EXPECT_GE(grown, static_cast<int64_t>(kBytes));
    EXPECT_LT(grown, static_cast<int64_t>(kBytes + kBytes / 4));
  }
  EXPECT_LT(grown_bytes(before, allocated_memory()), static_cast<int64_t>(kBytes / 4));
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memset(mapped, 1, kBytes);
  EXPECT_GE(grown_bytes(before, allocated_memory()), static_cast<int64_t>(kBytes / 4 * 3));
  ::munmap(mapped, kBytes);
}

// Runs in a process of its own, because the limit cannot be removed.
TEST(MemoryDeathTest, ObeysTheAddressSpaceLimit) {
  constexpr int64_t kLeftBytes = int64_t{64} << 20;
  const auto limit_and_ask = [] {
    std::ifstream file("/proc/self/statm");
    int64_t pages = 0;
    file >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + kLeftBytes);
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
    const int64_t available = available_memory_bytes();
    // A few pages may have been allocated or freed in between.
    std::_Exit(available > 0 && available <= kLeftBytes + (int64_t{4} << 20) ? 0 : 1);
  };
  EXPECT_EXIT(limit_and_ask(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
