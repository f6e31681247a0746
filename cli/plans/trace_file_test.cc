#include "cli/plans/trace_file.h"

#include <gtest/gtest.h>

#include "cli/output/json_output.h"

namespace tessera::cli {
namespace {

using std::chrono::microseconds;

Trace small_trace() {
  Trace trace;
  trace.load = {microseconds(0), microseconds(100)};
  trace.load_stages = {{.name = "load", .duration = microseconds(90)}};
  trace.bind = {microseconds(100), microseconds(50)};
  trace.bind_stages = {
      {.name = "place", .start = microseconds(5), .duration = microseconds(10)},
      {.name = "pack", .start = microseconds(15), .duration = microseconds(20), .bytes = 4096}};
  trace.run = {microseconds(200), microseconds(30)};
  const PlanPort row_major{.value = "x", .type = "float32 1x3", .layout = "row_major"};
  const PlanPort packed{.value = "w", .type = "float32 3", .layout = "row_major", .pack = "blocks"};
  const PlanPort blocked{.value = "x", .type = "float32 1x3", .layout = "nchw16c"};
  trace.plan.steps = {{.name = "x", .op = "convert", .inputs = {row_major}, .outputs = {blocked}},
                      {.name = "conv1",
                       .op = "Conv+Relu",
                       .nodes = {"conv1", "relu1"},
                       .inputs = {blocked, packed},
                       .outputs = {blocked}}};
  trace.steps = {{.node = "x", .op = "convert", .backend = "fast", .duration = microseconds(2)},
                 {.node = "conv1",
                  .op = "Conv+Relu",
                  .backend = "fast",
                  .algorithm = "jit",
                  .start = microseconds(5),
                  .duration = microseconds(10),
                  .flops = 20000,
                  .bytes = 512},
                 {.node = "\xff", .op = "Reshape"}};
  return trace;
}

TEST(TraceFile, StagesLieWithinTheirWhole) {
  const Json events = Json::parse(trace_text(small_trace()))["traceEvents"];
  ASSERT_EQ(events.size(), 10U);  // the last two are names
  EXPECT_EQ(events[0]["name"], "load");
  EXPECT_EQ(events[1]["name"], "bind") << "a stage called as its whole is left out";
  EXPECT_EQ(events[1]["ts"], 100.0);
  EXPECT_EQ(events[2]["name"], "place");
  EXPECT_EQ(events[2]["ts"], 105.0);
  EXPECT_EQ(events[2]["dur"], 10.0);
  EXPECT_FALSE(events[2]["args"].contains("bytes"));
  EXPECT_EQ(events[3]["args"]["bytes"], 4096);
  EXPECT_EQ(events[4]["name"], "run");
  EXPECT_EQ(events[4]["dur"], 30.0);
}

TEST(TraceFile, StepsOfNestedGraphsSayWhereTheyAreAndHowOftenTheyRan) {
  Trace trace = small_trace();
  trace.steps.insert(trace.steps.begin() + 1, {.node = "conv1",
                                               .op = "Conv+Relu",
                                               .start = microseconds(6),
                                               .duration = microseconds(4),
                                               .graph = "node 'loop' (Loop), body",
                                               .runs = 7});
  const Json events = Json::parse(trace_text(trace))["traceEvents"];
  ASSERT_EQ(events.size(), 11U);
  EXPECT_EQ(events[6]["args"]["graph"], "node 'loop' (Loop), body");
  EXPECT_EQ(events[6]["args"]["runs"], 7);
  EXPECT_FALSE(events[6]["args"].contains("nodes")) << "it is no step of the plan itself";
  EXPECT_TRUE(events[7]["args"].contains("nodes"));
}

TEST(TraceFile, StepsSayWhoDidThemAndHow) {
  const Json events = Json::parse(trace_text(small_trace()))["traceEvents"];
  ASSERT_EQ(events.size(), 10U);  // the last two are names
  EXPECT_EQ(events[5]["cat"], "convert");
  EXPECT_EQ(events[5]["args"]["layouts"], "row_major\xe2\x86\x92nchw16c");
  const Json& step = events[6];
  EXPECT_EQ(step["name"], "conv1");
  EXPECT_EQ(step["ph"], "X");
  EXPECT_EQ(step["ts"], 205.0);
  EXPECT_EQ(step["dur"], 10.0);
  EXPECT_EQ(step["args"]["op"], "Conv+Relu");
  EXPECT_EQ(step["args"]["backend"], "fast");
  EXPECT_EQ(step["args"]["algorithm"], "jit");
  EXPECT_EQ(step["args"]["layouts"], "nchw16c");
  EXPECT_EQ(step["args"]["nodes"], Json({"conv1", "relu1"}));
  EXPECT_EQ(step["args"]["inputs"][1], "w: float32 3 row_major, pack blocks");
  EXPECT_EQ(step["args"]["flops"], 20000);
  EXPECT_EQ(step["args"]["bytes"], 512);
  EXPECT_EQ(step["args"]["GFLOP/s"], 2.0);
}

TEST(TraceFile, WhatThePlanLacksIsShownAllTheSame) {
  const Json events = Json::parse(trace_text(small_trace()))["traceEvents"];
  ASSERT_EQ(events.size(), 10U);  // the last two are names
  EXPECT_EQ(events[7]["args"]["op"], "Reshape");
  EXPECT_FALSE(events[7]["args"].contains("GFLOP/s"));
  EXPECT_FALSE(events[7]["args"].contains("layouts"));
}

TEST(TraceFile, StepsOfDevicesAreOnLinesOfTheirOwn) {
  Trace trace = small_trace();
  StepRecord& step = trace.steps[0];
  step.device = "fake:1";
  step.start = microseconds(5);
  step.duration = microseconds(10);
  step.enqueue = microseconds(2);
  const Json events = Json::parse(trace_text(trace))["traceEvents"];
  ASSERT_EQ(events.size(), 13U);
  EXPECT_EQ(events[5]["name"], "enqueue " + step.node);
  EXPECT_EQ(events[5]["tid"], 1);
  EXPECT_EQ(events[5]["dur"], 2.0);
  EXPECT_EQ(events[6]["name"], "synchronise");
  EXPECT_EQ(events[6]["ts"], 207.0);
  EXPECT_EQ(events[6]["dur"], 8.0);
  EXPECT_EQ(events[7]["name"], step.node);
  EXPECT_EQ(events[7]["tid"], 2);
  EXPECT_EQ(events[12]["name"], "thread_name");
  EXPECT_EQ(events[12]["tid"], 2);
  EXPECT_EQ(events[12]["args"]["name"], "device fake:1");
}

}  // namespace
}  // namespace tessera::cli
