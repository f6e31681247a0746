#include "cli/plans/plan_summary.h"

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

using testing::Optional;
using testing::Pair;

PlanStep step_of(const char* name, const char* op, const char* backend) {
  return {.name = name, .op = op, .backend = backend, .nodes = {name}};
}

PlanPort port_of(const char* layout) { return {.value = "v", .layout = layout}; }

TEST(PlanSummary, BackendsConversionsAndCopiesMakeUpTheSteps) {
  PlanDescription plan;
  plan.steps = {step_of("a", "Conv", "slow"), step_of("a_0", "convert", "fast"),
                step_of("b", "Conv", "fast"), step_of("c", "Conv", "fast"),
                step_of("y", "copy", ""),     step_of("z", "convert", "")};
  const PlanCounts counts = count_steps(plan);
  EXPECT_EQ(counts.steps, 6);
  EXPECT_EQ(counts.conversions, 2);
  EXPECT_EQ(counts.copies, 1);
  EXPECT_THAT(counts.backends, ElementsAre(Pair("fast", 2), Pair("slow", 1)));
  EXPECT_EQ(steps_text(counts), "6 steps: 2 on fast, 1 on slow, 2 conversions, 1 copy");
  EXPECT_EQ(steps_text(count_steps({})), "0 steps");
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

TEST(PlanSummary, TotalsHaveEachStepOnceTheLongestFirst) {
  PlanDescription plan;
  plan.steps = {step_of("x", "convert", "fast"), step_of("a", "Conv", "fast"),
                step_of("b", "Relu", "slow"), step_of("y", "copy", ""),
                step_of("c", "Relu", "fast")};
  const std::vector<StepTotal> totals = step_totals(plan, {1, 20, 70, 5, 30});
  std::vector<std::string> found;
  for (const StepTotal& total : totals) {
    found.push_back(total.kind + " " + total.backend + " " + std::to_string(total.steps) + " " +
                    std::to_string(static_cast<int>(total.time_us)));
  }
  EXPECT_THAT(found, ElementsAre("kernel slow 1 70", "kernel fast 2 50", "copy  1 5",
                                 "conversion fast 1 1"));
  EXPECT_EQ(step_totals(plan, {})[0].steps, 2) << "without times the most steps first";
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

TEST(PlanSummary, NamesNodesInShort) {
  EXPECT_EQ(nodes_text({"conv1"}, {}), "conv1");
  EXPECT_EQ(nodes_text({"conv1", "relu1"}, {}), "conv1, relu1");
  EXPECT_EQ(nodes_text({std::string(20, 'c'), std::string(20, 'r')}, {}),
            std::string(20, 'c') + " and 1 more");
  EXPECT_EQ(nodes_text({"a", "b", "c"}, {}), "a and 2 more");
  EXPECT_EQ(nodes_text({"a", "b", "c"}, kPipeStyle), "a, b, c");
}

TEST(PlanSummary, NamesTheEndsOfLongGroups) {
  EXPECT_EQ(op_text("Conv+Relu+Add+Relu", {}), "Conv+Relu+Add+Relu");
  EXPECT_EQ(op_text("Conv+Relu+Add+Relu+Softmax", {}), "Conv+Relu+\xe2\x80\xa6+Softmax (5 nodes)");
  EXPECT_EQ(op_text("a+b+c+d+e", kPipeStyle), "a+b+c+d+e");
}

}  // namespace
}  // namespace tessera::cli
