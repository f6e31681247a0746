#include "cli/trace_file.h"

#include <gtest/gtest.h>

#include "cli/json_output.h"

namespace tessera::cli {
namespace {

using std::chrono::microseconds;

TEST(TraceFile, StepsLieWithinTheRun) {
  const RunTimes times{.load = {microseconds(0), microseconds(100)},
                       .bind = {microseconds(100), microseconds(50)},
                       .run = {microseconds(200), microseconds(30)}};
  const StepRecord step{.node = "conv1",
                        .op = "Conv",
                        .start = microseconds(5),
                        .duration = microseconds(10),
                        .flops = 20000,
                        .bytes = 512};
  const StepRecord instant{.node = "\xff", .op = "Reshape"};
  const Json trace = Json::parse(trace_text(times, {step, instant}));
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0]["name"], "load");
  EXPECT_EQ(events[1]["ts"], 100.0);
  EXPECT_EQ(events[2]["dur"], 30.0);
  EXPECT_EQ(events[3]["name"], "conv1");
  EXPECT_EQ(events[3]["ph"], "X");
  EXPECT_EQ(events[3]["ts"], 205.0);
  EXPECT_EQ(events[3]["dur"], 10.0);
  EXPECT_EQ(events[3]["args"]["op"], "Conv");
  EXPECT_EQ(events[3]["args"]["flops"], 20000);
  EXPECT_EQ(events[3]["args"]["bytes"], 512);
  EXPECT_EQ(events[3]["args"]["GFLOP/s"], 2.0);
  EXPECT_FALSE(events[4]["args"].contains("GFLOP/s"));
}

}  // namespace
}  // namespace tessera::cli
