#include "cli/reports/bench_report.h"

#include <sstream>

#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

BenchReport small_bench() {
  BenchReport report;
  report.model = "model.onnx";
  report.load_ms = 123.456;
  report.bind_ms = 45.6;
  report.first_ms = 9.8765;
  report.run_ms = {3, 1, 2, 4};
  report.threads = 2;
  report.counts = {.steps = 8, .conversions = 1, .backends = {{"fast", 5}, {"slow", 2}}};
  report.totals = {{.kind = "kernel", .backend = "fast", .steps = 5}};
  report.memory = {
      .arena_bytes = 512, .lower_bound_bytes = 448, .naive_bytes = 700, .weight_bytes = 9};
  report.library_bytes = 5;
  report.dispatch_ns_per_step = 4.5;
  report.compiled = {{.backend = "fast",
                      .kernels = 9,
                      .unique = 4,
                      .compiled = 3,
                      .loaded_from_store = 1,
                      .compile_seconds = 0.0025}};
  return report;
}

TEST(BenchReport, TheTableIsShort) {
  EXPECT_EQ(bench_text(small_bench(), {}),
            "    load      bind  first run    median       min       p90       p99  runs\n"
            "123.5 ms  45.60 ms   9.877 ms  2.500 ms  1.000 ms  3.700 ms  3.970 ms     4\n"
            "8 steps: 5 on fast, 2 on slow, 1 conversion; 2 threads\n");
}

TEST(BenchReport, JsonHasTheseKeysAndNoOthers) {
  const Json json = bench_json(small_bench());
  std::vector<std::string> keys;
  for (const auto& entry : json.items()) keys.push_back(entry.key());
  EXPECT_THAT(keys, ElementsAre("model", "load_us", "bind_us", "first_run_us", "median_us",
                                "min_us", "p90_us", "p99_us", "run_count", "thread_count",
                                "step_count", "conversion_count", "totals", "placement", "memory",
                                "dispatch_us", "cache", "codegen"));
  EXPECT_EQ(json["dispatch_us"], 0.0045);
  EXPECT_EQ(json["codegen"].dump(),
            R"([{"backend":"fast","group_count":9,"unique_count":4,"compiled_count":3,)"
            R"("loaded_from_store_count":1,"compile_us":2500.0}])");
  EXPECT_EQ(json["median_us"], 2500.0);
  EXPECT_EQ(json["min_us"], 1000.0);
  EXPECT_EQ(json["run_count"], 4);
  EXPECT_EQ(json["totals"].dump(), R"([{"kind":"kernel","backend":"fast","step_count":5}])");
  EXPECT_EQ(json["memory"].dump(),
            R"({"arena_bytes":512,"lower_bound_bytes":448,"weight_bytes":9,"naive_bytes":700,)"
            R"("library_bytes":5})");
  EXPECT_EQ(json["placement"]["measured_us"], 2500.0);
  EXPECT_EQ(json["placement"]["predicted_us"], nullptr);
}

TEST(BenchReport, WithoutARunThereAreNoFigures) {
  BenchReport report = small_bench();
  report.run_ms.clear();
  report.counts = {};
  report.threads = 1;
  EXPECT_THAT(bench_text(report, {}), HasSubstr("       -    -    -    -     0\n"
                                                "0 steps; 1 thread\n"));
  EXPECT_EQ(bench_json(report)["p99_us"], nullptr);
}

StreamsReport small_streams_report() {
  return {.model = "model.onnx",
          .load_ms = 123.456,
          .bind_ms = 45.6,
          .streams = 2,
          .threads = 4,
          .run_ms = {3, 1, 2, 4},
          .elapsed_ms = 8,
          .counts = {.steps = 8, .conversions = 1, .backends = {{"fast", 7}}}};
}

TEST(StreamsReport, TheTableIsShort) {
  EXPECT_EQ(streams_text(small_streams_report(), {}),
            "    load      bind  requests/s    median       p90       p99       max  requests\n"
            "123.5 ms  45.60 ms         500  2.500 ms  3.700 ms  3.970 ms  4.000 ms         4\n"
            "2 streams, 4 threads together; 8 steps: 7 on fast, 1 conversion\n");
}

TEST(StreamsReport, JsonHasTheseKeysAndNoOthers) {
  const Json json = streams_json(small_streams_report());
  std::vector<std::string> keys;
  for (const auto& entry : json.items()) keys.push_back(entry.key());
  EXPECT_THAT(keys, ElementsAre("model", "load_us", "bind_us", "stream_count", "thread_count",
                                "requests_per_second", "median_us", "p90_us", "p99_us", "max_us",
                                "run_count", "step_count", "conversion_count", "cache"));
  EXPECT_EQ(json["requests_per_second"], 500.0);
  EXPECT_EQ(json["max_us"], 4000.0);
}

TEST(StreamsReport, WithoutARunThereAreNoFigures) {
  StreamsReport report = small_streams_report();
  report.run_ms.clear();
  report.elapsed_ms = 0;
  EXPECT_THAT(streams_text(report, {}), HasSubstr("-       -    -    -    -         0\n"));
  EXPECT_EQ(streams_json(report)["requests_per_second"], nullptr);
  EXPECT_EQ(streams_json(report)["max_us"], nullptr);
}

RequestsReport small_requests_report() {
  return {.model = "model.onnx",
          .load_ms = 123.456,
          .bind_ms = 45.6,
          .first_ms = 9.8765,
          .run_ms = {3, 1, 2, 4},
          .shapes = 3,
          .threads = 1,
          .counts = {.steps = 8, .conversions = 1, .backends = {{"fast", 7}}},
          .cache = {}};
}

TEST(RequestsReport, TheTableIsShort) {
  EXPECT_EQ(requests_text(small_requests_report(), {}),
            "    load      bind  first run    median       p99       max  requests  shapes\n"
            "123.5 ms  45.60 ms   9.877 ms  2.500 ms  3.970 ms  4.000 ms         4       3\n"
            "8 steps: 7 on fast, 1 conversion; 1 thread\n");
}

TEST(RequestsReport, JsonHasTheseKeysAndNoOthers) {
  const Json json = requests_json(small_requests_report());
  std::vector<std::string> keys;
  for (const auto& entry : json.items()) keys.push_back(entry.key());
  EXPECT_THAT(keys, ElementsAre("model", "load_us", "bind_us", "first_run_us", "median_us",
                                "p99_us", "max_us", "run_count", "shape_count", "thread_count",
                                "step_count", "conversion_count", "cache"));
  EXPECT_EQ(json["median_us"], 2500.0);
  EXPECT_EQ(json["max_us"], 4000.0);
  EXPECT_EQ(json["run_count"], 4);
  EXPECT_EQ(json["shape_count"], 3);
}

TEST(RequestsReport, WithoutARequestThereAreNoFigures) {
  RequestsReport report = small_requests_report();
  report.run_ms.clear();
  report.shapes = 0;
  EXPECT_THAT(requests_text(report, {}), HasSubstr("       -    -    -         0       0\n"));
  EXPECT_EQ(requests_json(report)["p99_us"], nullptr);
}

TEST(BenchReport, FitsTheTerminal) {
  BenchReport report = small_bench();
  for (double* time : {&report.load_ms, &report.bind_ms, &report.first_ms}) *time = 123456.789;
  report.run_ms.assign(1000, 654321.987);
  report.counts.backends = {{std::string(200, 'b') + "\x1b", 5}};
  StreamsReport streams = small_streams_report();
  streams.load_ms = streams.bind_ms = 123456.789;
  streams.run_ms = report.run_ms;
  streams.counts = report.counts;
  RequestsReport requests = small_requests_report();
  requests.load_ms = requests.bind_ms = requests.first_ms = 123456.789;
  requests.run_ms = report.run_ms;
  requests.counts = report.counts;
  std::istringstream lines(bench_text(report, {}) + streams_text(streams, {}) +
                           requests_text(requests, {}));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
    EXPECT_EQ(line, printable(line));
  }
}

}  // namespace
}  // namespace tessera::cli
