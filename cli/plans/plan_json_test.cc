#include "cli/plans/plan_json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace tessera::cli {
namespace {

TEST(PlanJson, APlacementThatIsNotKnownHasTheSameKeys) {
  const PlacementDescription known{.predicted_seconds = 0.0035,
                                   .measured_seconds = 0.004,
                                   .build_seconds = 0.012,
                                   .lower_bound_seconds = 0.003,
                                   .is_proven_optimal = true,
                                   .gap = 0.02,
                                   .solve_seconds = 0.005,
                                   .contenders = {{.kind = ContenderKind::Solved},
                                                  {.seconds = 0.005,
                                                   .low = 0.004,
                                                   .high = 0.006,
                                                   .kind = ContenderKind::Alone,
                                                   .backend = "my_lib",
                                                   .round = 12},
                                                  {.kind = ContenderKind::InOrder}}};
  const Json json = placement_json(known, std::nullopt);
  EXPECT_DOUBLE_EQ(json["predicted_us"].get<double>(), 3500);
  EXPECT_EQ(json["isolated_us"], nullptr);
  EXPECT_EQ(json["measured_us"], 4000.0);
  EXPECT_EQ(json["is_proven_optimal"], true);
  EXPECT_EQ(json["contenders"][0]["contender"], "solved");
  EXPECT_EQ(json["contenders"][0]["is_chosen"], true);
  EXPECT_EQ(json["contenders"][0]["backend"], "");
  EXPECT_EQ(json["contenders"][0]["round"], 1);
  EXPECT_EQ(json["contenders"][2]["contender"], "in_order");
  EXPECT_EQ(json["contenders"][1].dump(),
            R"({"contender":"alone","backend":"my_lib","round":12,"is_chosen":false,)"
            R"("time":{"time_us":5000.0,"low_us":4000.0,"high_us":6000.0}})");
  EXPECT_EQ(placement_json(known, 7.0)["measured_us"], 7.0);
  const Json unknown = placement_json(std::nullopt, std::nullopt);
  ASSERT_EQ(unknown.size(), json.size());
  for (const auto& [key, value] : unknown.items()) {
    EXPECT_TRUE(json.contains(key));
    EXPECT_TRUE(value.is_null() || value == Json::array()) << key;
  }
}

TEST(PlanJson, AMarginSaysWhatItMeans) {
  const double infinity = std::numeric_limits<double>::infinity();
  CandidateDescription one{.nodes = {"n"}, .backend = "slow", .price_seconds = 40e-6};
  EXPECT_EQ(to_json(one)["margin"], "unknown");
  EXPECT_EQ(to_json(one)["behind_us"], nullptr);
  one.behind_seconds = 0.5e-6;
  EXPECT_EQ(to_json(one)["margin"], "behind");
  EXPECT_EQ(to_json(one)["behind_us"], 0.5);
  one.behind_seconds = 41e-6;
  EXPECT_EQ(to_json(one)["margin"], "never");
  one.behind_seconds = infinity;
  EXPECT_EQ(to_json(one)["margin"], "impossible");
  EXPECT_EQ(to_json(one)["behind_us"], nullptr);
  one.behind_seconds = 0;
  EXPECT_EQ(to_json(one)["margin"], "as_good");
  one.is_chosen = true;
  EXPECT_EQ(to_json(one)["margin"], "chosen");
  one.ahead_seconds = infinity;
  EXPECT_EQ(to_json(one)["margin"], "only_choice");
  EXPECT_EQ(to_json(one)["ahead_us"], nullptr);
}

TEST(PlanJson, CandidatesConversionsAndTuningKeepTheirFigures) {
  const CandidateDescription fine{.verdict = Verdict::NotBuilt, .error = std::nan("")};
  EXPECT_EQ(to_json(fine)["verdict"], "not_built");
  EXPECT_EQ(to_json(fine)["relative_error"], nullptr);
  EXPECT_EQ(to_json(fine)["time"], nullptr);
  ConversionDescription conversion{
      .from = "nhwc", .to = "row_major", .time = {1e-6, 1e-6, 2e-6, 9}};
  EXPECT_EQ(to_json(conversion)["time"]["high_us"], 2.0);
  conversion.refusal = "too large";
  EXPECT_EQ(to_json(conversion)["time"], nullptr);
  TuningDescription tuning{.measured = 7, .seconds = 2};
  tuning.phases = {{"run plans", 1.5}};
  EXPECT_EQ(to_json(tuning)["measured_count"], 7);
  EXPECT_EQ(to_json(tuning)["tuning_us"], 2e6);
  EXPECT_EQ(to_json(tuning)["phases"].dump(), R"([{"phase":"run_plans","phase_us":1500000.0}])");
}

}  // namespace
}  // namespace tessera::cli
