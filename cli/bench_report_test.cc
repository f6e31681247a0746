#include "cli/bench_report.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/text_table.h"

namespace tessera::cli {
namespace {

using testing::HasSubstr;

BenchReport small_report() {
  BenchReport report;
  report.model = "model.onnx";
  report.load_ms = 123.456;
  report.bind_ms = 45.6;
  report.first_ms = 9.8765;
  report.run_ms = {3, 1, 2, 4};
  report.threads = 2;
  report.counts = {.steps = 8, .conversions = 1, .backends = {{"fast", 5}, {"slow", 2}}};
  report.memory = {
      .arena_bytes = 512, .lower_bound_bytes = 448, .naive_bytes = 700, .weight_bytes = 9};
  report.library_bytes = 5;
  report.dispatch_ns_per_step = 4.5;
  return report;
}

TEST(BenchReport, TheTableIsShort) {
  EXPECT_EQ(bench_text(small_report()),
            "load ms  bind ms  first ms  median ms  min ms  p90 ms  p99 ms  runs\n"
            " 123.46    45.60     9.877      2.500   1.000   3.700   3.970     4\n"
            "8 steps (1 conversion): fast 5, slow 2; 2 threads\n");
}

TEST(BenchReport, JsonHasTheseKeysAndNoOthers) {
  const Json json = bench_json(small_report());
  std::vector<std::string> keys;
  for (const auto& entry : json.items()) keys.push_back(entry.key());
  EXPECT_THAT(keys, testing::ElementsAre("model", "load_ms", "bind_ms", "first_ms", "median_ms",
                                         "min_ms", "p90_ms", "p99_ms", "runs", "threads", "steps",
                                         "conversions", "backends", "placement", "memory",
                                         "dispatch_ns_per_step", "cache"));
  EXPECT_EQ(json["dispatch_ns_per_step"], 4.5);
  EXPECT_EQ(json["median_ms"], 2.5);
  EXPECT_EQ(json["min_ms"], 1.0);
  EXPECT_EQ(json["runs"], 4);
  EXPECT_EQ(json["backends"].dump(), R"({"fast":5,"slow":2})");
  EXPECT_EQ(json["memory"].dump(),
            R"({"arena_bytes":512,"lower_bound_bytes":448,"weights_bytes":9,"naive_bytes":700,)"
            R"("backend_bytes":5})");
  EXPECT_EQ(
      json["placement"].dump(),
      R"({"predicted_ms":null,"isolated_ms":null,"measured_ms":2.5,"build_ms":null,)"
      R"("lower_bound_ms":null,"proven_optimal":null,"gap":null,"solve_ms":null,"contenders":null})");
}

TEST(BenchReport, WithoutARunThereAreNoFigures) {
  BenchReport report = small_report();
  report.run_ms.clear();
  report.counts = {};
  report.threads = 1;
  EXPECT_THAT(bench_text(report), HasSubstr("          -       -       -       -     0\n"
                                            "0 steps (0 conversions); 1 thread\n"));
  EXPECT_EQ(bench_json(report)["p99_ms"], nullptr);
  EXPECT_EQ(bench_json(report)["backends"].dump(), "{}");
}

TEST(BenchReport, FitsTheTerminal) {
  BenchReport report = small_report();
  for (double* time : {&report.load_ms, &report.bind_ms, &report.first_ms}) *time = 123456.789;
  report.run_ms.assign(1000, 654321.987);
  report.counts.backends = {{std::string(200, 'b') + "\x1b", 5}};
  std::istringstream lines(bench_text(report));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
    EXPECT_EQ(line, printable(line));
  }
}

}  // namespace
}  // namespace tessera::cli
