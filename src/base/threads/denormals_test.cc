#include "base/threads/denormals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "base/threads/parallel.h"

namespace tessera {
namespace {

// Computes half of the smallest normal number at run time.
bool makes_denormals() {
  volatile float min_normal = std::numeric_limits<float>::min();
  volatile float half = min_normal * 0.5F;
  return half != 0.0F;
}

TEST(Denormals, AreFlushedWhileARuleLives) {
  ASSERT_TRUE(makes_denormals());
  {
    const ScopedDenormals flush(Denormals::Flush);
    EXPECT_FALSE(makes_denormals());
    {
      const ScopedDenormals keep(Denormals::Keep);
      EXPECT_FALSE(makes_denormals());
      const ScopedDenormals again(Denormals::Flush);
    }
    EXPECT_FALSE(makes_denormals());
  }
  EXPECT_TRUE(makes_denormals());
}

// How many pieces ran, and how many of them saw denormals.
struct Seen {
  std::atomic<int> denormals = 0;
  std::atomic<int> pieces = 0;
};

void look(ThreadPool& pool, Seen& seen) {
  pool.parallel_for(2000, 1, [&](int64_t begin, int64_t end) {
    volatile double work = 1;
    for (int step = 0; step < 2000; ++step) work = work * 1.0001;
    if (makes_denormals()) seen.denormals += static_cast<int>(end - begin);
    seen.pieces += static_cast<int>(end - begin);
  });
}

TEST(Denormals, AreFlushedOnAllThreadsOfAPoolThatSaysSo) {
  ThreadPool keeping(4);
  ThreadPool flushing(4, Denormals::Flush);
  for (int round = 0; round < 3; ++round) {
    Seen flushed;
    flushing.execute([&] { look(flushing, flushed); });
    EXPECT_EQ(flushed.denormals, 0);
    EXPECT_EQ(flushed.pieces, 2000);
    EXPECT_TRUE(makes_denormals());
    Seen kept;
    keeping.execute([&] { look(keeping, kept); });
    EXPECT_EQ(kept.denormals, 2000);
  }
}

TEST(Denormals, AreTheCallersAgainAfterAnException) {
  ThreadPool pool(2, Denormals::Flush);
  EXPECT_THROW(pool.execute([] { throw 1; }), int);
  EXPECT_TRUE(makes_denormals());
}

}  // namespace
}  // namespace tessera
