// Workers that send invalid answers: each causes an error and a new worker.

#include <cstdlib>
#include <string>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "microbench/worker_bench.h"

namespace tessera::tuning {
namespace {

WorkerOptions fake(const std::string& mode) {
  ::setenv("TESSERA_TEST_WORKER", mode.c_str(), 1);
  return {.program = TESSERA_FAKE_WORKER, .candidate_timeout_seconds = 0.2};
}

const ConversionKey kAny = {.backend = "any", .from = "row_major", .to = "any:other"};

struct BadAnswer {
  const char* mode;
  const char* reason;
};

const BadAnswer kBadAnswers[] = {
    {"noise", "invalid answer"},           {"flood", "invalid answer"},
    {"absurd_length", "invalid answer"},   {"wrong_checksum", "invalid answer"},
    {"wrong_number", "invalid answer"},    {"wrong_kind", "invalid answer"},
    {"foreign_content", "invalid answer"}, {"not_a_number", "invalid answer"},
    {"negative_time", "invalid answer"},   {"bad_failure", "invalid answer"},
    {"bad_question", "invalid answer"},    {"nothing", "ended with exit code 0"},
};

class WorkerAnswer : public testing::TestWithParam<BadAnswer> {};

TEST_P(WorkerAnswer, IsALossAndNoMore) {
  WorkerBench bench({}, fake(GetParam().mode));
  const int first = bench.process_id();
  for (int time = 0; time < 2; ++time) {
    const Outcome outcome = bench.convert(kAny, 1);
    EXPECT_TRUE(outcome.is_lost);
    EXPECT_THAT(outcome.reason, HasSubstr(GetParam().reason));
    EXPECT_NE(bench.process_id(), first);
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorkerAnswer, testing::ValuesIn(kBadAnswers),
                         [](const auto& row) { return std::string(row.param.mode); });

TEST(WorkerAnswer, AnyBitMayFlip) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    WorkerBench bench({}, fake("flipped_bits:" + std::to_string(seed * 37)));
    const Outcome outcome = bench.convert(kAny, 1);
    EXPECT_TRUE(outcome.is_lost);
    EXPECT_THAT(outcome.reason, AnyOf(HasSubstr("invalid answer"), HasSubstr("exit code 0")));
  }
}

TEST(WorkerStart, OneOfAnotherVersionIsRefused) {
  EXPECT_THAT(error_of(ErrorKind::DeviceFailed,
                       [&] { const WorkerBench bench({}, fake("other_version")); }),
              HasSubstr("found another one"));
}

TEST(WorkerStart, OneThatEndsAtOnceIsRefused) {
  EXPECT_THAT(
      error_of(ErrorKind::DeviceFailed, [&] { const WorkerBench bench({}, fake("ends_at_once")); }),
      HasSubstr("exit code 5"));
}

}  // namespace
}  // namespace tessera::tuning
