#include "cli/fused_groups_report.h"

#include <sstream>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

PlanStep group_step(const std::string& op, int64_t bytes, int64_t unfused_bytes) {
  return {.name = "last",
          .op = op,
          .backend = "fast",
          .algorithm = "fused",
          .nodes = {"first", "last"},
          .bytes = bytes,
          .unfused_bytes = unfused_bytes};
}

PlanDescription plan_of_groups() {
  PlanDescription plan;
  plan.steps = {group_step("Sigmoid+Mul", 8192, 20480),
                {.name = "alone", .op = "Conv", .backend = "fast", .nodes = {"alone"}},
                group_step("Add+Sub", 1024, 4096),
                group_step("Sigmoid+Mul", 8192, 20480)};
  return plan;
}

const std::vector<double> kTimes = {2, 100, 9, 4};

TEST(FusedGroupsReport, EqualGroupsShareARowAndTheLongestComesFirst) {
  const std::string text = fused_groups_text(plan_of_groups(), kTimes, kPipeStyle);
  EXPECT_THAT(text,
              HasSubstr("fused group  kernel      steps     bytes   unfused    time\n"
                        "Add+Sub      fast:fused      1  1.00 KiB  4.00 KiB  9.0 \xc2\xb5s\n"
                        "Sigmoid+Mul  fast:fused      2  8.00 KiB  20.0 KiB  3.0 \xc2\xb5s\n"));
  EXPECT_THAT(text, Not(HasSubstr("Conv")));
  EXPECT_THAT(text, Not(HasSubstr("predicted")));
}

TEST(FusedGroupsReport, PricesStandBesideThoseOfTheNodes) {
  PlanDescription plan = plan_of_groups();
  plan.placement.emplace();
  for (PlanStep& step : plan.steps) step.predicted_seconds = 2e-6;
  plan.steps[0].unfused_seconds = 5e-6;
  plan.steps[2].unfused_seconds = 7e-6;
  plan.steps[3].unfused_seconds = 9e-6;
  EXPECT_THAT(fused_groups_text(plan, kTimes, kPipeStyle),
              HasSubstr("3.0 \xc2\xb5s     2.0 \xc2\xb5s   7.0 \xc2\xb5s\n"));
  plan.steps[0].unfused_seconds.reset();
  EXPECT_THAT(fused_groups_text(plan, kTimes, kPipeStyle),
              HasSubstr("3.0 \xc2\xb5s     2.0 \xc2\xb5s        -\n"))
      << "not known of each";
}

TEST(FusedGroupsReport, APlanWithoutGroupsHasNone) {
  PlanDescription plan = plan_of_groups();
  for (PlanStep& step : plan.steps) step.unfused_bytes.reset();
  EXPECT_EQ(fused_groups_text(plan, kTimes, kPipeStyle), "");
}

TEST(FusedGroupsReport, FitsTheTerminalWhateverTheGroupHolds) {
  PlanDescription plan = plan_of_groups();
  plan.placement.emplace();
  std::string ops = "Add";
  for (int count = 0; count < 1100; ++count) ops += "+Multiplication";
  plan.steps[0].op = ops;
  plan.steps[0].algorithm = std::string(200, 'a') + "\x1b";
  for (const size_t columns : {60U, 100U, 160U}) {
    std::istringstream lines(fused_groups_text(plan, kTimes, terminal_style(columns)));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(character_count(line), columns) << line;
      EXPECT_EQ(line, printable(line));
    }
  }
}

}  // namespace
}  // namespace tessera::cli
