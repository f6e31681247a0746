// Measures groups on benches that fail in their own ways.
#include "measure/measure_group.h"

#include "base/matchers_test.h"

namespace tessera::tuning {
namespace {

// A bench that is lost, or does not know a candidate.
class FalteringBench final : public Bench {
 public:
  void load(const GroupCase&) override {}
  Outcome build(const CandidateId& id) override {
    ++builds;
    if (id.algorithm == "strange") return {.reason = "who?", .is_unknown = true};
    return {.seconds = 1e-3};
  }
  Checked check(const CandidateId&) override { return {.tolerance = 1e-4}; }
  Outcome run(const CandidateId& id, Weights, int) override {
    if (id.algorithm == "crashes") return {.reason = "it crashed", .is_lost = true};
    return {.seconds = id.algorithm == "slow" ? 2e-3 : 1e-3};
  }
  void drop(const CandidateId&) override { ++drops; }
  Outcome convert(const ConversionKey&, int) override { return {.seconds = 1e-6}; }
  int builds = 0;
  int drops = 0;
};

TEST(MeasureGroup, BuildsTheOthersAgainWhereOneTookTheProcessWithIt) {
  FalteringBench bench;
  FalteringBench fallback;
  std::vector<Trial> trials(4);
  const char* algorithms[] = {"good", "crashes", "slow", "strange"};
  for (size_t index = 0; index < trials.size(); ++index) {
    trials[index].id.algorithm = algorithms[index];
    trials[index].bench = &bench;
  }
  trials[3].id.algorithm = "strange";
  const auto watcher = [](const Trial&, double) { return true; };
  EXPECT_TRUE(measure_group(trials, {}, 1e9, watcher));
  EXPECT_EQ(trials[0].cost->refusal, "");
  EXPECT_GE(trials[0].cost->warm->rounds, 5);
  EXPECT_EQ(trials[1].cost->refusal, "it crashed");
  // Far behind, so it was dropped after a few rounds.
  EXPECT_LT(trials[2].cost->warm->rounds, 5);
  EXPECT_THAT(trials[3].cost->refusal, HasSubstr("who?"));
  // The good one was built twice, because its first kernel was lost with the process.
  EXPECT_EQ(bench.builds, 5);
  EXPECT_EQ(bench.drops, 2);
}

// Judges by the magnitudes of terms, if it has them.
class StrictBench final : public Bench {
 public:
  void load(const GroupCase&) override {}
  Outcome build(const CandidateId&) override {
    ++builds;
    return {.seconds = 1e-3};
  }
  Checked check(const CandidateId& id) override {
    const bool is_inexact = id.algorithm == "inexact" && !has_limits;
    const bool is_fine = !is_inexact && id.algorithm != "wrong";
    return {.reason = is_fine ? "" : "numbers: element 0"};
  }
  Outcome run(const CandidateId&, Weights, int) override { return {.seconds = 1e-3}; }
  void drop(const CandidateId&) override {}
  Outcome convert(const ConversionKey&, int) override { return {.seconds = 1e-6}; }
  int builds = 0;
  bool has_limits = false;
};

TEST(MeasureGroup, AsksForLimitsOnceAndWhereTheyDecide) {
  StrictBench bench;
  int asked = 0;
  const MeasureLimits limits{.add_limits = [&] {
    ++asked;
    return !std::exchange(bench.has_limits, true);
  }};
  const auto refusals = [&](std::initializer_list<const char*> algorithms) {
    std::vector<Trial> trials(algorithms.size());
    size_t index = 0;
    for (const char* algorithm : algorithms) {
      trials[index].id.algorithm = algorithm;
      trials[index++].bench = &bench;
    }
    EXPECT_TRUE(measure_group(trials, limits, 1e9, [](const Trial&, double) { return true; }));
    std::vector<std::string> all;
    for (const Trial& trial : trials) all.push_back(trial.cost->refusal);
    return all;
  };
  EXPECT_THAT(refusals({"exact"}), ElementsAre(""));
  EXPECT_EQ(asked, 0);
  bench.builds = 0;
  EXPECT_THAT(refusals({"exact", "inexact", "wrong"}), ElementsAre("", "", "numbers: element 0"));
  // For the inexact one, and in vain for the wrong one.
  EXPECT_EQ(asked, 2);
  // Kernels that were built before the group was loaded anew are built again.
  EXPECT_EQ(bench.builds, 5);
}

TEST(MeasureGroup, LeavesOutWhatCannotWin) {
  FalteringBench bench;
  std::vector<Trial> trials(3);
  trials[0].id.algorithm = "good";
  trials[1].id.algorithm = "bound";
  trials[1].bound_seconds = 5e-3;
  trials[2].id.algorithm = "alone";
  trials[2].is_single_threaded = true;
  for (Trial& trial : trials) trial.bench = &bench;
  EXPECT_TRUE(measure_group(trials, {}, 1e9, [](const Trial&, double) { return true; }));
  EXPECT_TRUE(trials[0].cost.has_value());
  EXPECT_FALSE(trials[1].cost.has_value());
  EXPECT_FALSE(trials[2].cost.has_value());
}

TEST(MeasureGroup, EndsAfterTheMaximumNumberOfRounds) {
  FalteringBench bench;
  std::vector<Trial> trials(1);
  trials[0].bench = &bench;
  const MeasureLimits limits{.tuning = {.kernel_min_rounds = 1, .kernel_max_rounds = 1}};
  EXPECT_TRUE(measure_group(trials, limits, 1e9, [](const Trial&, double) { return true; }));
  EXPECT_EQ(trials[0].cost->warm->rounds, 1);
}

TEST(MeasureGroup, RefusesWhatTakesTooLong) {
  FalteringBench bench;
  std::vector<Trial> trials(1);
  trials[0].bench = &bench;
  EXPECT_TRUE(measure_group(trials, {.candidate_timeout_seconds = 1e-4}, 1e9,
                            [](const Trial&, double) { return true; }));
  EXPECT_THAT(trials[0].cost->refusal, HasSubstr("expected at most 0.0001 s"));
}

}  // namespace
}  // namespace tessera::tuning
