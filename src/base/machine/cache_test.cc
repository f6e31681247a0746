#include "base/machine/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace tessera {
namespace {

double seconds_to_read(const std::vector<char>& memory) {
  const auto start = std::chrono::steady_clock::now();
  read_into_caches(memory.data(), static_cast<int64_t>(memory.size()));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Cache, KnowsItsSize) { EXPECT_GE(last_level_cache_bytes(), 1 << 15); }

TEST(Cache, WhatWasEvictedTakesLongerToRead) {
  const std::vector<char> memory(1 << 18, 1);
  // The minimum of several runs, because other processes may interfere.
  double warm = 1;
  double cold = 1;
  for (int round = 0; round < 20; ++round) {
    seconds_to_read(memory);
    warm = std::min(warm, seconds_to_read(memory));
    evict_from_caches(memory.data(), static_cast<int64_t>(memory.size()));
    cold = std::min(cold, seconds_to_read(memory));
  }
  EXPECT_GT(cold, 1.2 * warm);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](char byte) { return byte == 1; }));
}

TEST(Cache, NothingIsNothing) {
  evict_from_caches(nullptr, 0);
  read_into_caches(nullptr, 0);
}

TEST(Cache, EachCoreHasLessThanAll) {
  EXPECT_GE(core_cache_bytes(), int64_t{64} << 10);
  EXPECT_LE(core_cache_bytes(), last_level_cache_bytes());
}

}  // namespace
}  // namespace tessera
