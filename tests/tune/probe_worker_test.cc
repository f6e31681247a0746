// `tessera doctor` reports workers that do not start, do not answer, or are of another build.
#include "microbench/worker_bench.h"

#include <chrono>
#include <cstdlib>

#include "base/matchers_test.h"
#include "base/process/module_folder.h"

namespace tessera::tuning {
namespace {

constexpr double kPatienceSeconds = 60;

WorkerProbe probe_fake(const char* mode) {
  ::setenv("TESSERA_TEST_WORKER", mode, 1);
  return probe_worker(TESSERA_FAKE_WORKER, kPatienceSeconds);
}

TEST(ProbeWorker, TheInstalledOneAnswers) {
  const FoundCode found = find_program("tessera-worker");
  ASSERT_EQ(found.refusal, "");
  const WorkerProbe probe = probe_worker(found.path, kPatienceSeconds);
  EXPECT_EQ(probe.reason, "");
  EXPECT_GT(probe.seconds, 0);
}

TEST(ProbeWorker, SaysHowAProcessEnded) {
  EXPECT_THAT(probe_fake("ends_at_once").reason, HasSubstr("ended with exit code 5"));
}

TEST(ProbeWorker, FindsAnotherVersion) {
  EXPECT_THAT(probe_fake("other_version").reason, HasSubstr("found another one"));
}

TEST(ProbeWorker, DoesNotWaitForever) {
  // Its argument is the id of this process, so it sleeps for that many seconds.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(probe_worker("/bin/sleep", 1).reason, "it did not answer within 1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProbeWorker, AFileThatIsNoProgramIsAReason) {
  EXPECT_NE(probe_worker("/etc/passwd", kPatienceSeconds).reason, "");
  EXPECT_NE(probe_worker("/there/is/no/such/program", kPatienceSeconds).reason, "");
}

}  // namespace
}  // namespace tessera::tuning
