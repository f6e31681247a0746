#include "cli/plans/placement_report.h"

#include <limits>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

PlacementDescription small_placement() {
  return {.predicted_seconds = 0.0035,
          .measured_seconds = 0.004,
          .build_seconds = 0.012,
          .lower_bound_seconds = 0.003,
          .is_proven_optimal = true,
          .gap = 0.02,
          .solve_seconds = 0.005,
          .contenders = {
              {.seconds = 0.0045, .low = 0.0044, .high = 0.0046, .kind = ContenderKind::Solved},
              {.seconds = 0.005, .low = 0.0049, .high = 0.0051, .kind = ContenderKind::Greedy}}};
}

CandidateDescription candidate(const std::string& node, const std::string& backend,
                               double price_seconds, std::optional<double> behind_seconds) {
  return {.nodes = {node},
          .op = "Relu",
          .backend = backend,
          .verdict = Verdict::Fine,
          .price_seconds = price_seconds,
          .behind_seconds = behind_seconds};
}

TEST(PlacementReport, KeepsPredictionsAndTheirProofApartFromWhatWasMeasured) {
  PlacementDescription placement = small_placement();
  EXPECT_EQ(placement_text(placement, 4.5, kPipeStyle),
            "one run: 4.500 ms measured, 3.500 ms predicted from its steps; building its kernels "
            "takes 12.00 ms\n"
            "this plan was chosen by running whole plans; by the times of steps known now, another "
            "is predicted\n"
            "to be the fastest (proven): 3.000 ms, against 3.060 ms predicted for this one\n"
            "\n"
            "plan that was run                     one run  result\n"
            "best by timed steps, round 1  4.500 ms \xc2\xb1"
            "2.2 %  used: the fastest\n"
            "fastest kernel of each node   5.000 ms \xc2\xb1"
            "2.0 %\n");
  EXPECT_EQ(placement_text(std::nullopt, 4.5, {}), "");
  placement.contenders.clear();
  EXPECT_THAT(placement_text(placement, 4.5, kPipeStyle), HasSubstr("an earlier tuning"));
  placement.gap = 1e-9;
  EXPECT_THAT(placement_text(placement, std::nullopt, {}),
              HasSubstr("no plan has a lower prediction (proven)\n"));
  PlacementDescription unproven = small_placement();
  unproven.is_proven_optimal = false;
  unproven.measured_seconds = std::nullopt;
  EXPECT_THAT(placement_text(unproven, std::nullopt, {}), HasSubstr("ended before it could tell"));
  EXPECT_THAT(placement_text(unproven, std::nullopt, {}), Not(HasSubstr("measured")));
}

TEST(PlacementReport, SaysInWordsWhatWasRunAndWhyTheFirstIsUsed) {
  PlacementDescription placement = small_placement();
  placement.contenders = {
      {.seconds = 0.00402, .kind = ContenderKind::Chosen},
      {.seconds = 0.004, .kind = ContenderKind::Solved, .round = 3},
      {.seconds = 0.0041, .kind = ContenderKind::Known},
      {.seconds = 0.0042, .kind = ContenderKind::InOrder},
      {.seconds = 0.005, .kind = ContenderKind::Alone, .backend = "onednn"},
      {.seconds = 0.006, .kind = ContenderKind::Alone, .backend = "mylib", .round = 2},
      {.seconds = 0.007, .kind = ContenderKind::Unsplit, .backend = "mylib"}};
  EXPECT_THAT(placement_text(placement, std::nullopt, kPipeStyle),
              HasSubstr("best by kernels timed alone   4.020 ms  used: as fast as any\n"
                        "best by timed steps, round 3  4.000 ms\n"
                        "plan of an earlier tuning     4.100 ms\n"
                        "plan without measuring        4.200 ms\n"
                        "mostly onednn                 5.000 ms\n"
                        "mostly mylib, round 2         6.000 ms\n"
                        "largest groups of mylib       7.000 ms\n"));
  placement.contenders[0].seconds = 0.0044;
  EXPECT_THAT(placement_text(placement, std::nullopt, {}),
              HasSubstr("used: soonest built and run"));
}

TEST(PlacementReport, WhatWouldChangeTheChoice) {
  const double infinity = std::numeric_limits<double>::infinity();
  CandidateDescription one = candidate("n", "slow", 40e-6, 12.4e-6);
  EXPECT_EQ(margin_text(one), "chosen if 12.4 \xc2\xb5s (31 %) faster");
  one.behind_seconds = 41e-6;
  EXPECT_EQ(margin_text(one), "never chosen, even at 0 \xc2\xb5s");
  one.behind_seconds = infinity;
  EXPECT_EQ(margin_text(one), "no plan can use it");
  one.behind_seconds = 0;
  EXPECT_EQ(margin_text(one), "predicted as fast or faster");
  one.behind_seconds.reset();
  EXPECT_EQ(margin_text(one), "");
  one.is_chosen = true;
  EXPECT_EQ(margin_text(one), "chosen");
  one.ahead_seconds = 3e-6;
  EXPECT_EQ(margin_text(one), "chosen, 3.0 \xc2\xb5s ahead");
  one.ahead_seconds = infinity;
  EXPECT_EQ(margin_text(one), "chosen, the only one");
}

TEST(PlacementReport, TheClosestCallsComeFirstAndWhatIsMissingIsSaid) {
  PlanDescription plan;
  for (const std::string node : {"far", "near"}) {
    CandidateDescription chosen = candidate(node, "fast", 10e-6, 0);
    chosen.is_chosen = true;
    plan.candidates.push_back(chosen);
    const double behind = node == "far" ? 9e-6 : 2e-6;
    plan.candidates.push_back(candidate(node, "slower", 30e-6, behind));
    plan.candidates.push_back(candidate(node, "slowest", 50e-6, 3 * behind));
  }
  EXPECT_EQ(closest_calls_text(plan, 2, {}),
            "\nclosest choices\n"
            "node  used       other        its layouts  threads  the other is\n"
            "near  Relu fast  Relu slower                     1  chosen if 2.0 \xc2\xb5s (7 %) "
            "faster\n"
            "far   Relu fast  Relu slower                     1  chosen if 9.0 \xc2\xb5s (30 %) "
            "faster\n");
  plan.candidates.push_back(candidate("near", "unknown", 1, std::nullopt));
  EXPECT_THAT(closest_calls_text(plan, 2, {}),
              HasSubstr("\n1 of 7 margins not computed in 2 s; raise --margins\n"));
  EXPECT_EQ(closest_calls_text({}, 2, {}), "");
}

}  // namespace
}  // namespace tessera::cli
