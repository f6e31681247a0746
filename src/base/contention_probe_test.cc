#include "base/contention_probe.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera {
namespace {

TEST(ContentionProbe, IsRelativeToTheBest) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    ContentionProbe probe;
    ContentionProbe::Reading reading;
    double smallest = 1e9;
    pool.execute([&] {
      for (int repetition = 0; repetition < 100; ++repetition) {
        reading = probe.read(pool);
        EXPECT_GE(reading.slowdown, 1);
        EXPECT_GE(reading.often, 1);
        smallest = std::min(smallest, reading.slowdown);
      }
    });
    EXPECT_LT(smallest, 1.5) << threads << " threads";
    EXPECT_GE(reading.often, smallest * 0.98) << threads << " threads";
  }
}

}  // namespace
}  // namespace tessera
