#include "cli/plans/explain_report.h"

#include <numeric>
#include <sstream>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

// A conversion, a fused group, and a node that one backend refused.
ExplainReport small_report() {
  const PlanPort row_major{.value = "x", .type = "float32 1x3x8x8", .layout = "row_major"};
  const PlanPort blocked{.value = "x", .type = "float32 1x3x8x8", .layout = "nchw16c"};
  const PlanPort weight{.value = "w",
                        .type = "float32 8x3x3x3",
                        .layout = "row_major",
                        .pack = "blocks16",
                        .is_constant = true};
  const PlanPort made{.value = "h", .type = "float32 1x8x8x8", .layout = "nchw16c"};
  const PlanPort output{.value = "y", .type = "int64 1", .layout = "row_major"};
  ExplainReport report;
  report.model = "model.onnx";
  report.threads = 2;
  report.runs = 10;
  report.run_us = 1234;
  report.step_us = {10, 30, 60};
  report.plan.arena_bytes = 2048;
  report.plan.steps = {{.name = "x",
                        .op = "convert",
                        .backend = "fast",
                        .algorithm = "reorder",
                        .inputs = {row_major},
                        .outputs = {blocked},
                        .bytes = 1536},
                       {.name = "relu1",
                        .op = "Conv+Relu",
                        .backend = "fast",
                        .algorithm = "jit:avx2",
                        .nodes = {"conv1", "relu1"},
                        .inputs = {blocked, weight},
                        .outputs = {made},
                        .flops = 600000,
                        .bytes = 4096,
                        .workspace_bytes = 64,
                        .is_in_place = true},
                       {.name = "top",
                        .op = "ArgMax",
                        .backend = "slow",
                        .nodes = {"top"},
                        .inputs = {made},
                        .outputs = {output},
                        .refusals = {{"fast", "top", "there is no such op"}}}};
  return report;
}

std::vector<size_t> all_steps(const ExplainReport& report) {
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  return steps;
}

TEST(ExplainReport, ShowsStepsConversionsTotalsAndRefusals) {
  const std::string text = explain_text(small_report(), {});
  EXPECT_THAT(text, HasSubstr("model.onnx\n3 steps: 1 on fast, 1 on slow, 1 conversion; 2 threads\n"
                              "a run takes 1.234 ms, the median of 10 runs\n"
                              "memory: 2.00 KiB for intermediate values"));
  EXPECT_THAT(text, HasSubstr("sizes: 3 of 3 steps run with other sizes, too\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "step  node or value  op         backend  algorithm  layouts               time  "
          "GFLOP/s\n"
          "   0  x              convert    fast     reorder    row_major\xe2\x86\x92nchw16c  10.0 "
          "\xc2\xb5s\n"
          "   1  conv1, relu1   Conv+Relu  fast     jit:avx2   nchw16c            30.0 \xc2\xb5s"
          "     20.0\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "step  conversion of  from       to       backend  read+written     time\n"
          "   0  x              row_major  nchw16c  fast         1.50 KiB  10.0 \xc2\xb5s\n"));
  EXPECT_THAT(text, HasSubstr("backend              steps     time   share  GFLOP/s\n"
                              "slow                     1  60.0 \xc2\xb5s  60.0 %\n"
                              "fast                     1  30.0 \xc2\xb5s  30.0 %     20.0\n"
                              "conversions by fast      1  10.0 \xc2\xb5s  10.0 %\n"));
  EXPECT_THAT(text, HasSubstr("refused by fast\n  1 node: there is no such op\n    top\n"));
}

TEST(ExplainReport, CopiesAreNoBackends) {
  ExplainReport report = small_report();
  report.plan.steps[2].op = "copy";
  report.plan.steps[2].backend = "";
  const std::string text = explain_text(report, {});
  EXPECT_THAT(text, HasSubstr("3 steps: 1 on fast, 1 conversion, 1 copy; 2 threads\n"));
  EXPECT_THAT(text, HasSubstr("copies                   1  60.0 \xc2\xb5s"));
  EXPECT_THAT(explain_steps_text(report, {2}, {}),
              HasSubstr("step 2 'top' (copy), by Tessera itself\n"));
}

TEST(ExplainReport, NamesAreWholeInAPipe) {
  ExplainReport report = small_report();
  const std::string name(300, 'n');
  for (PlanStep& step : report.plan.steps) step.name = step.op = step.algorithm = name;
  report.model = name + ".onnx";
  report.plan.steps[2].refusals = {{"fast", name, "there is no such op"}};
  const std::string text = explain_text(report, kPipeStyle);
  EXPECT_THAT(text, HasSubstr("\n    " + name + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xa6")));
}

TEST(ExplainReport, FitsTheTerminalWhateverThePlanHolds) {
  ExplainReport report = small_report();
  for (PlanStep& step : report.plan.steps) {
    for (std::string* text : {&step.name, &step.op, &step.algorithm}) *text += std::string(99, 'n');
    step.name += "\x1b\xff";
    step.nodes.assign(40, std::string(120, 'm'));
    for (PlanPort& port : step.inputs) port.layout += std::string(99, 'l');
    step.refusals.assign(2, {"fast", std::string(120, 'm'), std::string(300, 'r') + " \x1b"});
  }
  for (const size_t columns : {60U, 100U, 160U}) {
    const TextStyle style = terminal_style(columns);
    for (const std::string& text :
         {explain_text(report, style), explain_steps_text(report, all_steps(report), style)}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(character_count(line), columns) << line;
        EXPECT_EQ(line, printable(line));
      }
    }
  }
}

TEST(ExplainReport, ANodeIsExplainedInFull) {
  const ExplainReport report = small_report();
  EXPECT_THAT(
      explain_steps_text(report, {1}, {}),
      HasSubstr("\nstep 1 'relu1' (Conv+Relu) on fast, jit:avx2\n"
                "  30.0 \xc2\xb5s (30.0 % of all steps), 20.0 GFLOP/s; 600 k FLOPs, 4.00 KiB "
                "read and written, 64 B of\n  workspace, in place\n"
                "  covers 'conv1', 'relu1'\n"
                "  input 'x': float32 1x3x8x8, nchw16c\n"
                "  input 'w': float32 8x3x3x3, row_major, constant, packed\n"
                "  output 'h': float32 1x8x8x8, nchw16c\n"));
  EXPECT_THAT(explain_steps_text(report, {2}, {}),
              HasSubstr("  fast refused 'top': there is no such op\n"));
  EXPECT_THAT(explain_steps_text(report, {2}, {}), Not(HasSubstr("step 1")));
}

TEST(ExplainReport, AFusedGroupStandsBesideItsNodes) {
  ExplainReport report = small_report();
  EXPECT_THAT(explain_text(report, {}), Not(HasSubstr("fused group")));
  PlanStep& step = report.plan.steps[1];
  step.unfused_bytes = 8192;
  EXPECT_THAT(explain_steps_text(report, {1}, {}),
              HasSubstr("  unfused, 8.00 KiB would be read and written\n"));
  step.unfused_seconds = 40e-6;
  step.predicted_seconds = 25e-6;
  EXPECT_THAT(
      explain_steps_text(report, {1}, {}),
      HasSubstr("  unfused, 8.00 KiB would be read and written in 40.0 \xc2\xb5s (predicted "
                "for this step: 25.0 \xc2\xb5s)\n"));
  EXPECT_THAT(explain_text(report, {}), HasSubstr("Conv+Relu    fast:jit:avx2      1  4.00 KiB"));
  const Json json = explain_json(report, {1});
  EXPECT_EQ(json["steps"][0]["unfused_bytes"], 8192);
  EXPECT_EQ(json["steps"][0]["unfused_us"], 40.0);
  EXPECT_EQ(explain_json(report, {0})["steps"][0]["unfused_bytes"], nullptr);
}

TEST(ExplainReport, StepsAreFoundByNodeValueAndPrefix) {
  PlanDescription plan = small_report().plan;
  EXPECT_THAT(find_steps(plan, "conv1"), ElementsAre(1));
  EXPECT_THAT(find_steps(plan, "h"), ElementsAre(1));
  EXPECT_THAT(find_steps(plan, "x"), ElementsAre(0));
  EXPECT_THAT(find_steps(plan, "*"), ElementsAre(1, 2));
  EXPECT_THAT(find_steps(plan, "to*"), ElementsAre(2));
  plan.steps[2].nodes = {"conv*"};
  EXPECT_THAT(find_steps(plan, "conv*"), ElementsAre(2)) << "a name before a prefix";
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { find_steps(plan, "absent"); }),
              HasSubstr("--node 'absent': no step covers such a node; there are "
                        "'relu1', 'top'"));
  EXPECT_THROW(find_steps({}, "x"), Error);
}

TEST(ExplainReport, ManyReasonsAreCutShort) {
  ExplainReport report = small_report();
  for (int index = 0; index < 20; ++index) {
    report.plan.steps[2].refusals.push_back({"fast", "top", "reason " + std::to_string(index)});
  }
  EXPECT_THAT(explain_text(report, {}),
              HasSubstr("  and 9 more reasons (--node NAME or --json shows all)\n"));
}

TEST(ExplainReport, JsonHasEverything) {
  const ExplainReport report = small_report();
  const Json json = explain_json(report, all_steps(report));
  EXPECT_EQ(json["step_count"], 3);
  EXPECT_EQ(json["conversion_count"], 1);
  EXPECT_EQ(json["arena_bytes"], 2048);
  EXPECT_EQ(json["run_count"], 10);
  ASSERT_EQ(json["steps"].size(), 3U);
  const Json& step = json["steps"][1];
  EXPECT_EQ(step["index"], 1);
  EXPECT_EQ(step["nodes"], Json({"conv1", "relu1"}));
  EXPECT_EQ(step["inputs"][1]["pack"], "blocks16");
  EXPECT_EQ(step["inputs"][1]["is_constant"], true);
  EXPECT_EQ(step["median_us"], 30.0);
  EXPECT_DOUBLE_EQ(step["share"].get<double>(), 0.3);
  EXPECT_EQ(step["gflop_per_second"], 20.0);
  EXPECT_EQ(step["is_in_place"], true);
  EXPECT_EQ(json["steps"][2]["refusals"][0]["reason"], "there is no such op");
  EXPECT_EQ(json["totals"][2]["kind"], "conversion");
  EXPECT_EQ(json["refusals"][0]["nodes"], Json({"top"}));
  EXPECT_EQ(explain_json(report, {2})["steps"].size(), 1U);
}

TEST(ExplainReport, WithCostsThePredictionStandsBesideTheMeasurement) {
  ExplainReport report = small_report();
  report.plan.placement = {.predicted_seconds = 0.001, .lower_bound_seconds = 0.001};
  for (PlanStep& step : report.plan.steps) step.predicted_seconds = 25e-6;
  const std::string text = explain_text(report, {});
  EXPECT_THAT(text, HasSubstr("one run: 1.234 ms measured, 1.000 ms predicted from its steps\n"));
  EXPECT_THAT(text, HasSubstr("time  predicted  GFLOP/s\n"));
  EXPECT_THAT(text, HasSubstr("30.0 \xc2\xb5s    25.0 \xc2\xb5s     20.0\n"));
  EXPECT_THAT(text,
              HasSubstr("read+written     time  predicted\n"
                        "   0  x              row_major  nchw16c  fast         1.50 KiB  10.0 "
                        "\xc2\xb5s    25.0 \xc2\xb5s\n"));
  const Json json = explain_json(report, all_steps(report));
  EXPECT_EQ(json["steps"][1]["predicted_us"], 25.0);
  EXPECT_EQ(json["placement"]["measured_us"], 1234.0);
  EXPECT_EQ(explain_json(small_report(), {0})["steps"][0]["predicted_us"], nullptr);
}

TEST(ExplainReport, AnEmptyPlanHasOnlyAHeader) {
  ExplainReport report;
  report.runs = 1;
  EXPECT_THAT(explain_text(report, {}), Not(HasSubstr("\n\n")));
}

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
