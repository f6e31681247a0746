#include "cli/placement_report.h"

#include <gmock/gmock.h>

#include <limits>

namespace tessera::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

PlacementDescription small_placement() {
  return {.predicted_seconds = 0.0035,
          .build_seconds = 0.012,
          .measured_seconds = 0.004,
          .lower_bound_seconds = 0.003,
          .is_proven_optimal = true,
          .gap = 0.02,
          .solve_seconds = 0.005,
          .contenders = {{"solved", 0.0045}, {"greedy", 0.005}}};
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

TEST(PlacementReport, TellsPriceBoundProofAndRunOff) {
  EXPECT_EQ(placement_text(small_placement(), 4.5),
            "placement: predicted 3.500 ms, measured 4.500 ms; its kernels take 12.00 ms to "
            "build; nothing takes\nless than 3.000 ms (proven; the choice takes 2.00 % more); "
            "solved in 5.000 ms\n"
            "run-off: solved 4.500 ms, greedy 5.000 ms\n");
  EXPECT_EQ(placement_text(std::nullopt, 4.5), "");
  PlacementDescription cheapest = small_placement();
  cheapest.gap = 1e-9;
  EXPECT_THAT(placement_text(cheapest, std::nullopt), HasSubstr("(proven, and reached)"));
  PlacementDescription unproven = small_placement();
  unproven.is_proven_optimal = false;
  unproven.measured_seconds = std::nullopt;
  EXPECT_THAT(placement_text(unproven, std::nullopt), HasSubstr("ended before it had a proof"));
  EXPECT_THAT(placement_text(unproven, std::nullopt), Not(HasSubstr("measured")));
}

TEST(PlacementReport, JsonHasNullWhereNothingIsKnown) {
  const Json json = placement_json(small_placement(), std::nullopt);
  EXPECT_EQ(
      json.dump(),
      R"({"predicted_ms":3.5,"isolated_ms":null,"measured_ms":4.0,"build_ms":12.0,"lower_bound_ms":3.0,)"
      R"("proven_optimal":true,"gap":0.02,"solve_ms":5.0,"contenders":{"solved":4.5,"greedy":5.0}})");
  EXPECT_EQ(placement_json(small_placement(), 7.0)["measured_ms"], 7.0);
  const Json unknown = placement_json(std::nullopt, std::nullopt);
  EXPECT_EQ(unknown.size(), json.size());
  for (const auto& entry : unknown.items()) EXPECT_TRUE(entry.value().is_null()) << entry.key();
}

TEST(PlacementReport, WhatWouldChangeTheChoice) {
  const double infinity = std::numeric_limits<double>::infinity();
  CandidateDescription one = candidate("n", "slow", 40e-6, 12.4e-6);
  EXPECT_EQ(margin_text(one), "wins if 12.4 \xc2\xb5s (31 %) faster");
  one.behind_seconds = 41e-6;
  EXPECT_EQ(margin_text(one), "not even for nothing");
  one.behind_seconds = infinity;
  EXPECT_EQ(margin_text(one), "fits nowhere");
  one.behind_seconds = 0;
  EXPECT_EQ(margin_text(one), "as good");
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
  EXPECT_EQ(closest_calls_text(plan),
            "\nclosest calls at  chosen  next    layouts  thr  which\n"
            "near              fast    slower             1  wins if 2.0 \xc2\xb5s (7 %) faster\n"
            "far               fast    slower             1  wins if 9.0 \xc2\xb5s (30 %) "
            "faster\n");
  plan.candidates.push_back(candidate("near", "unknown", 1, std::nullopt));
  EXPECT_THAT(closest_calls_text(plan),
              HasSubstr("what 1 of 7 measured candidates lack was not found out in time"));
  EXPECT_EQ(closest_calls_text({}), "");
}

}  // namespace
}  // namespace tessera::cli
