#include "base/errors/log.h"

#include <vector>

#include "base/matchers_test.h"
#include "base/threads/threads_test.h"

namespace tessera {
namespace {

TEST(Log, PassesEachMessageOnOnceAndInOrder) {
  std::vector<std::string> heard;
  const Log log([&](const std::string& message) { heard.push_back(message); });
  for (const char* message : {"first", "second", "first", "first ", "second"}) log.warn(message);
  EXPECT_THAT(heard, ElementsAre("first", "second", "first "));
}

TEST(Log, DoesNotRememberWithoutEnd) {
  size_t heard = 0;
  const Log log([&](const std::string&) { ++heard; });
  constexpr size_t kCount = 5000;
  for (size_t index = 0; index < kCount; ++index) log.warn(std::to_string(index));
  EXPECT_LE(log.messages().size(), 1000U);
  log.warn(std::to_string(kCount - 1));
  EXPECT_EQ(heard, kCount) << "a recent one is not repeated";
  log.warn("0");
  EXPECT_EQ(heard, kCount + 1);
}

TEST(Log, WithoutACallbackItWritesToStderrAlone) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Log().warn("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tessera: careful\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Log, MayBeCalledFromManyThreads) {
  int heard = 0;  // unguarded: the log's own lock must do
  const Log log([&](const std::string&) { ++heard; });
  run_at_once(4, [&](int thread) {
    for (int index = 0; index < 100; ++index) {
      log.warn("common " + std::to_string(index));
      log.warn(std::to_string(thread) + " alone " + std::to_string(index));
    }
  });
  EXPECT_EQ(heard, 500);
}

}  // namespace
}  // namespace tessera
