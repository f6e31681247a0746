#include "base/threads/stopwatch.h"

#include <gtest/gtest.h>

#include <thread>

namespace tessera {
namespace {

TEST(Stopwatch, TellsTimeThatPassedFromTimeThatWasUsed) {
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Stopwatch::Reading reading = watch.read();
  EXPECT_GE(reading.seconds, 0.02);
  EXPECT_LT(reading.thread_seconds, 0.01);
  EXPECT_TRUE(reading.has_blocked);
}

TEST(Stopwatch, CountsWorkAsUsed) {
  const Stopwatch watch;
  volatile double sum = 0;
  while (watch.read().thread_seconds < 0.005) sum = sum + 1;
  EXPECT_GE(watch.read().seconds, 0.004);
  EXPECT_FALSE(watch.read().has_blocked);
}

}  // namespace
}  // namespace tessera
