#include "base/machine/processor_load.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

void compute_for(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) continue;
}

TEST(ProcessorLoad, DoesNotCountWhatIsOurs) {
  const ProcessorLoad from = read_processor_load();
  if (from.processors == 0) GTEST_SKIP() << "the system does not tell";
  compute_for(0.2);
  const ProcessorLoad to = read_processor_load();
  EXPECT_GT(to.own_seconds - from.own_seconds, 0.02);
  EXPECT_GE(processors_of_others(from, to), 0);
  EXPECT_LE(processors_of_others(from, to), from.processors + 0.5);
}

TEST(ProcessorLoad, CountsOthersUnlessTheyHelp) {
  const int child = ::fork();
  if (child == 0) {
    while (true) continue;
  }
  const ProcessorLoad alone = read_processor_load();
  const ProcessorLoad helped = read_processor_load(child);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const ProcessorLoad alone_later = read_processor_load();
  const ProcessorLoad helped_later = read_processor_load(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (alone.processors == 0) GTEST_SKIP() << "the system does not tell";
  // Its share is smaller on a busy machine.
  const double share = helped_later.own_seconds - helped.own_seconds;
  EXPECT_GT(share, 0.02);
  EXPECT_GT(processors_of_others(alone, alone_later),
            processors_of_others(helped, helped_later) + 0.5 * share / 0.4);
}

TEST(ProcessorLoad, IsZeroWhereTheSystemDoesNotTell) {
  EXPECT_EQ(processors_of_others({}, {}), 0);
  EXPECT_EQ(processors_of_others({}, read_processor_load()), 0);
}

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
