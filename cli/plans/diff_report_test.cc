#include "cli/plans/diff_report.h"

#include <numeric>
#include <sstream>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

const std::string kLongName(200, 'n');

// A conversion and a group on one side, its two nodes and another one on the other.
DiffSide first_side() {
  DiffSide side{.source = "before.json", .options = "", .report = {}};
  side.report.model = "model.onnx";
  side.report.version = "0.1.0";
  side.report.processor = "a processor";
  side.report.libraries = {{"fast", "3.2"}, {"slow", "1"}};
  side.report.threads = 2;
  side.report.runs = 7;
  side.report.run_us = 120;
  const PlanPort plain{.value = "x", .type = "float32 1x8", .layout = "row_major", .device = "cpu"};
  const PlanPort blocked{.value = "x", .type = "float32 1x8", .layout = "nchw16c", .device = "cpu"};
  const PlanPort made{.value = "h", .type = "float32 1x8", .layout = "nchw16c", .device = "cpu"};
  side.report.plan.steps = {
      {.name = "x",
       .op = "convert",
       .backend = "fast",
       .algorithm = "reorder",
       .inputs = {plain},
       .outputs = {blocked}},
      {.name = "relu1",
       .op = "Conv+Relu",
       .backend = "fast",
       .algorithm = "jit",
       .nodes = {"conv1", "relu1"},
       .inputs = {blocked,
                  {.value = "w", .layout = "row_major", .device = "cpu", .is_constant = true}},
       .outputs = {made}},
      {.name = "top", .op = "ArgMax", .backend = "slow", .nodes = {"top"}, .inputs = {made}}};
  side.report.step_us = {10, 30, 60};
  return side;
}

DiffSide second_side() {
  DiffSide side = first_side();
  side.source = "model.onnx";
  side.options = "--no-fuse";
  side.report.libraries["fast"] = "3.3";
  side.report.run_us = 180;
  PlanStep relu = side.report.plan.steps[1];
  PlanStep conv = relu;
  conv.name = "conv1";
  conv.op = "Conv";
  conv.nodes = {"conv1"};
  conv.outputs[0].value = "inner";
  relu.op = "Relu";
  relu.nodes = {"relu1"};
  relu.backend = "slow";
  relu.algorithm = "";
  relu.inputs = conv.outputs;
  side.report.plan.steps = {conv, relu, side.report.plan.steps[2]};
  side.report.step_us = {40, 20, 60};
  return side;
}

std::string text_of(const DiffSide& first, const DiffSide& second, const TextStyle& style) {
  return diff_text(first, second, difference_of(first.report, second.report), style);
}

TEST(DiffReport, ShowsWhatChangedAndWhatItCosts) {
  EXPECT_EQ(text_of(first_side(), second_side(), kPipeStyle),
            R"(A  before.json of model.onnx: 3 steps: 1 on fast, 1 on slow, 1 conversion; 2 threads
B  model.onnx with --no-fuse: 3 steps: 2 on slow, 1 on fast; 2 threads
fast: 3.2 → 3.3

changed          nodes or value  A                                       B                          A time   B time     B - A
fusion, backend  conv1, relu1    Conv+Relu fast:jit                      Conv fast:jit; Relu slow  30.0 µs  60.0 µs  +30.0 µs
removed          x               convert fast:reorder row_major→nchw16c  none                      10.0 µs           -10.0 µs

total                A time    B time     B - A  B / A
steps that differ   40.0 µs   60.0 µs  +20.0 µs  1.500
1 equal step        60.0 µs   60.0 µs         0  1.000
all steps          100.0 µs  120.0 µs  +20.0 µs  1.200
a run              120.0 µs  180.0 µs  +60.0 µs  1.500
)");
}

TEST(DiffReport, EqualPlansHaveTotalsOnly) {
  DiffSide slower = first_side();
  slower.report.run_us = 240;
  const std::string text = text_of(first_side(), slower, kPipeStyle);
  EXPECT_THAT(text, HasSubstr("\nboth plans have the same steps\n"));
  EXPECT_THAT(text, HasSubstr("a run          120.0 \xc2\xb5s  240.0 \xc2\xb5s"));
  EXPECT_THAT(text, Not(HasSubstr("all steps")));
}

TEST(DiffReport, FitsTheTerminalAndIsCompleteInAPipe) {
  DiffSide first = first_side();
  DiffSide second = second_side();
  first.source = kLongName;
  second.options = kLongName;
  first.report.plan.steps[0].name = kLongName + "\n";
  for (PlanStep& step : second.report.plan.steps) step.algorithm = kLongName;
  for (const size_t columns : {kMinColumns, kTextColumns, kMaxColumns}) {
    std::istringstream lines(text_of(first, second, terminal_style(columns)));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(character_count(line), columns) << line;
    }
  }
  const std::string text = text_of(first, second, kPipeStyle);
  EXPECT_THAT(text, HasSubstr(kLongName + "\\x0a"));
  EXPECT_THAT(text, HasSubstr("slow:" + kLongName));
}

TEST(DiffReport, JsonHasBothPlansAndEachChange) {
  const DiffSide first = first_side();
  const DiffSide second = second_side();
  const Json json = diff_json(first, second, difference_of(first.report, second.report));
  EXPECT_EQ(json["is_equal"], false);
  EXPECT_EQ(json["plan_a"]["file"], "before.json");
  EXPECT_EQ(json["plan_b"]["options"], "--no-fuse");
  EXPECT_EQ(json["plan_b"]["steps_us"], 120.0);
  EXPECT_EQ(json["settings"], Json::parse(R"([{"setting": "fast", "a_text": "3.2",
                                               "b_text": "3.3"}])"));
  ASSERT_EQ(json["step_changes"].size(), 2);
  const Json& fusion = json["step_changes"][0];
  EXPECT_EQ(fusion["kinds"], Json::parse(R"(["fusion", "backend"])"));
  EXPECT_EQ(fusion["difference_us"], 30.0);
  EXPECT_EQ(fusion["a_steps"][0]["nodes"], Json::parse(R"(["conv1", "relu1"])"));
  EXPECT_EQ(fusion["b_steps"][1]["backend"], "slow");
  EXPECT_EQ(json["step_changes"][1]["b_steps"], Json::array());
  EXPECT_EQ(json["equal_step_count"], 1);
  EXPECT_EQ(json["equal_b_us"], 60.0);
}

std::string explained(const ExplainReport& report) {
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  return json_text(explain_json(report, steps));
}

TEST(DiffReport, WhatExplainPrintsIsReadWithoutLoss) {
  const ExplainReport report = second_side().report;
  const ExplainReport read = read_explain_json(explained(report), "b.json");
  EXPECT_TRUE(difference_of(report, read).is_equal());
  EXPECT_TRUE(difference_of(report, read).settings.empty());
  EXPECT_EQ(read.model, report.model);
  EXPECT_EQ(read.version, report.version);
  EXPECT_EQ(read.processor, report.processor);
  EXPECT_EQ(read.libraries, report.libraries);
  EXPECT_EQ(read.threads, report.threads);
  EXPECT_EQ(read.runs, report.runs);
  EXPECT_EQ(read.run_us, report.run_us);
  EXPECT_EQ(read.step_us, report.step_us);
  EXPECT_EQ(explained(read), explained(report));
}

TEST(DiffReport, OutputOfEarlierVersionsIsRead) {
  Json json = Json::parse(explained(first_side().report));
  json.erase("version");
  json.erase("processor");
  json.erase("libraries");
  const ExplainReport read = read_explain_json(json_text(json), "old.json");
  EXPECT_EQ(read.processor, "");
  EXPECT_EQ(read.plan.steps.size(), 3);
}

// The error of a text; "" if there is none.
std::string mistake_of(const std::string& text) {
  return error_of(ErrorKind::InvalidArgument, [&] { read_explain_json(text, "a.json"); });
}

TEST(DiffReport, WhatExplainDidNotPrintIsRefusedWithItsPlace) {
  EXPECT_THAT(mistake_of(""), HasSubstr("file 'a.json': expected JSON"));
  EXPECT_THAT(mistake_of("{\"model\": 1"), HasSubstr("expected JSON"));
  EXPECT_THAT(mistake_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(mistake_of("{}"), HasSubstr("file 'a.json', model: expected a value"));
  struct Case {
    Json::json_pointer place;
    Json value;
    const char* message;
  };
  const Case cases[] = {
      {Json::json_pointer("/model"), 5, "model: expected a text"},
      {Json::json_pointer("/thread_count"), -1, "thread_count: expected a count"},
      {Json::json_pointer("/thread_count"), 1e30, "thread_count: expected a count"},
      {Json::json_pointer("/median_us"), -1, "median_us: expected a time of 0 to 1e15"},
      {Json::json_pointer("/steps/0/median_us"), 1e16, "steps[0].median_us: expected a time"},
      {Json::json_pointer("/median_us"), "x", "found string"},
      {Json::json_pointer("/median_us"), nullptr, "found null"},
      {Json::json_pointer("/steps"), Json::object(), "steps: expected a list"},
      {Json::json_pointer("/steps/1"), 3, "steps[1]: expected an object"},
      {Json::json_pointer("/steps/1/nodes/0"), 3, "steps[1].nodes[0]: expected a text"},
      {Json::json_pointer("/steps/1/inputs/0/is_constant"), 1,
       "steps[1].inputs[0].is_constant: expected true or false"},
      {Json::json_pointer("/libraries/0/version"), 1, "libraries[0].version: expected a text"},
      {Json::json_pointer("/step_count"), 5, "it was printed with --node"},
  };
  for (const Case& each : cases) {
    Json json = Json::parse(explained(first_side().report));
    json[each.place] = each.value;
    EXPECT_THAT(mistake_of(json_text(json)), HasSubstr(each.message));
  }
}

}  // namespace
}  // namespace tessera::cli
