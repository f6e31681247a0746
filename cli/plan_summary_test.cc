#include "cli/plan_summary.h"

#include <gmock/gmock.h>

namespace tessera::cli {
namespace {

using testing::ElementsAre;
using testing::Optional;
using testing::Pair;

PlanStep step_of(const char* name, const char* op, const char* backend) {
  return {.name = name, .op = op, .backend = backend, .nodes = {name}};
}

PlanPort port_of(const char* layout) { return {.value = "v", .layout = layout}; }

TEST(PlanSummary, BackendsAndConversionsMakeUpTheSteps) {
  PlanDescription plan;
  plan.steps = {step_of("a", "Conv", "slow"), step_of("a_0", "convert", "fast"),
                step_of("b", "Conv", "fast"), step_of("c", "Conv", "fast"),
                step_of("y", "copy", "")};
  const PlanCounts counts = count_steps(plan);
  EXPECT_EQ(counts.steps, 5);
  EXPECT_EQ(counts.conversions, 1);
  EXPECT_THAT(counts.backends, ElementsAre(Pair("fast", 2), Pair("slow", 1), Pair("tessera", 1)));
  EXPECT_EQ(backend_counts_text(counts), "fast 2, slow 1, tessera 1");
  EXPECT_EQ(count_steps({}).steps, 0);
}

TEST(PlanSummary, LayoutsAreThoseOfWhatIsNoConstant) {
  PlanStep step = step_of("a", "Conv", "fast");
  EXPECT_EQ(layouts_text(step), "");
  PlanPort weight = port_of("row_major");
  weight.is_constant = true;
  PlanPort packed = port_of("row_major");
  packed.pack = "blocks";
  step.inputs = {port_of("nhwc"), weight, packed, port_of("nhwc")};
  step.outputs = {port_of("nhwc")};
  EXPECT_EQ(layouts_text(step), "nhwc");
  step.inputs.push_back(port_of("row_major"));
  EXPECT_EQ(layouts_text(step), "nhwc,row_major\xe2\x86\x92nhwc");
  step.inputs = {weight};
  EXPECT_EQ(layouts_text(step), "nhwc");
}

TEST(PlanSummary, PercentilesLieBetweenValuesInProportion) {
  EXPECT_EQ(percentile({7}, 99), 7);
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 3.7);
  EXPECT_EQ(percentile(values, 100), 4);
}

TEST(PlanSummary, RecordsFindTheirStepsThoughNamesRepeat) {
  PlanDescription plan;
  plan.steps = {step_of("x", "convert", "fast"), step_of("x", "convert", "fast"),
                step_of("a", "Conv", "fast")};
  const StepRecord conversion{.node = "x", .op = "convert"};
  const StepRecord unknown{.node = "a", .op = "Relu"};
  const StepRecord conv{.node = "a", .op = "Conv"};
  EXPECT_THAT(plan_indices({conversion, conversion, unknown, conv}, plan),
              ElementsAre(Optional(0U), Optional(1U), std::nullopt, Optional(2U)));
}

TEST(PlanSummary, TimeIsSharedByBackendsWithConversionsApart) {
  PlanDescription plan;
  plan.steps = {step_of("a", "Conv", "slow"), step_of("b", "Conv", "fast"),
                step_of("x", "convert", "fast"), step_of("c", "Conv", "fast")};
  plan.steps[1].flops = 7000;
  const std::vector<TimeShare> shares = time_shares(plan, {1, 2, 16, 4});
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].name, "fast");
  EXPECT_EQ(shares[0].steps, 2);
  EXPECT_EQ(shares[0].time_us, 6);
  EXPECT_EQ(shares[0].flops, 7000);
  EXPECT_EQ(shares[1].name, "slow");
  EXPECT_EQ(shares[2].name, "conversions");
  EXPECT_EQ(shares[2].time_us, 16);
  EXPECT_EQ(gflops_of(7000, 7), 1);
  EXPECT_EQ(gflops_of(7000, 0), 0);
}

TEST(PlanSummary, RefusalsAreGroupedByBackendAndReason) {
  PlanDescription plan;
  plan.steps = {step_of("a", "Conv", "slow"), step_of("b", "Conv", "slow"),
                step_of("c", "Conv", "slow")};
  plan.steps[0].refusals = {{"fast", "a", "rare"}, {"brisk", "a", "other"}};
  plan.steps[1].refusals = {{"fast", "b", "common"}, {"fast", "b", "common"}};
  plan.steps[2].refusals = {{"fast", "c", "common"}};
  const std::vector<RefusalGroup> groups = group_refusals(plan);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].backend, "brisk");
  EXPECT_EQ(groups[1].reason, "common");
  EXPECT_THAT(groups[1].nodes, ElementsAre("b", "c"));
  EXPECT_EQ(groups[2].reason, "rare");
}

}  // namespace
}  // namespace tessera::cli
