#include "base/yardstick.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera {
namespace {

TEST(Yardstick, IsRelativeToTheBest) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    Yardstick yardstick;
    Yardstick::Reading reading;
    double least = 1e9;
    pool.execute([&] {
      for (int repetition = 0; repetition < 100; ++repetition) {
        reading = yardstick.read(pool);
        EXPECT_GE(reading.slowdown, 1);
        EXPECT_GE(reading.often, 1);
        least = std::min(least, reading.slowdown);
      }
    });
    EXPECT_LT(least, 1.5) << threads << " threads";
    EXPECT_GE(reading.often, least * 0.98) << threads << " threads";
  }
}

}  // namespace
}  // namespace tessera
