#include "cli/reports/bench_report.h"

#include "cli/reports/cache_report.h"

#include <array>
#include <optional>

#include "cli/output/quantities.h"
#include "cli/output/text_table.h"
#include "cli/plans/memory_report.h"
#include "cli/plans/placement_report.h"

namespace tessera::cli {
namespace {

struct Figure {
  const char* name;
  double percent;
};

constexpr std::array kFigures = {Figure{"median", 50}, Figure{"min", 0}, Figure{"p90", 90},
                                 Figure{"p99", 99}};

// With several streams, the slowest request tells more than the fastest.
constexpr std::array kStreamFigures = {Figure{"median", 50}, Figure{"p90", 90}, Figure{"p99", 99},
                                       Figure{"max", 100}};

// With random shapes, a request with shapes that are new is the slowest.
constexpr std::array kRequestFigures = {Figure{"median", 50}, Figure{"p99", 99},
                                        Figure{"max", 100}};

std::optional<double> figure_of(const std::vector<double>& run_ms, const Figure& figure) {
  if (run_ms.empty()) return std::nullopt;
  return percentile(run_ms, figure.percent);
}

std::optional<double> requests_per_second(const StreamsReport& report) {
  if (report.elapsed_ms <= 0) return std::nullopt;
  return 1000 * static_cast<double>(report.run_ms.size()) / report.elapsed_ms;
}

// A table of one row, which columns are added to.
class FigureRow {
 public:
  void add(const std::string& title, const std::string& cell) {
    columns_.push_back({title, Align::Right});
    cells_.push_back(cell);
  }
  std::string text(const TextStyle& style) const {
    TextTable table(columns_);
    table.add_row(cells_);
    return table.text(style);
  }

 private:
  std::vector<Column> columns_;
  std::vector<std::string> cells_;
};

std::string ms_text(double time_ms) { return time_text(time_ms / 1000); }

std::string figure_text(const std::vector<double>& run_ms, const Figure& figure) {
  const std::optional<double> time = figure_of(run_ms, figure);
  return time ? ms_text(*time) : "-";
}

Json figure_us_json(const std::vector<double>& run_ms, const Figure& figure) {
  const std::optional<double> time_ms = figure_of(run_ms, figure);
  return optional_json(time_ms ? std::optional(1000 * *time_ms) : std::nullopt);
}

}  // namespace

std::string bench_text(const BenchReport& report, const TextStyle& style) {
  FigureRow row;
  row.add("load", ms_text(report.load_ms));
  row.add("bind", ms_text(report.bind_ms));
  row.add("first run", ms_text(report.first_ms));
  for (const Figure& figure : kFigures) {
    row.add(figure.name, figure_text(report.run_ms, figure));
  }
  row.add("runs", std::to_string(report.run_ms.size()));
  return row.text(style) +
         wrapped(steps_text(report.counts) + "; " + count_text(report.threads, "thread"), style) +
         placement_text(report.placement, figure_of(report.run_ms, kFigures[0]), style);
}

std::string streams_text(const StreamsReport& report, const TextStyle& style) {
  FigureRow row;
  row.add("load", ms_text(report.load_ms));
  row.add("bind", ms_text(report.bind_ms));
  const std::optional<double> throughput = requests_per_second(report);
  row.add("requests/s", throughput ? quantity_text(*throughput) : "-");
  for (const Figure& figure : kStreamFigures) {
    row.add(figure.name, figure_text(report.run_ms, figure));
  }
  row.add("requests", std::to_string(report.run_ms.size()));
  return row.text(style) + wrapped(count_text(report.streams, "stream") + ", " +
                                       count_text(report.threads, "thread") + " together; " +
                                       steps_text(report.counts),
                                   style);
}

std::string requests_text(const RequestsReport& report, const TextStyle& style) {
  FigureRow row;
  row.add("load", ms_text(report.load_ms));
  row.add("bind", ms_text(report.bind_ms));
  row.add("first run", ms_text(report.first_ms));
  for (const Figure& figure : kRequestFigures) {
    row.add(figure.name, figure_text(report.run_ms, figure));
  }
  row.add("requests", std::to_string(report.run_ms.size()));
  row.add("shapes", std::to_string(report.shapes));
  return row.text(style) +
         wrapped(steps_text(report.counts) + "; " + count_text(report.threads, "thread"), style);
}

Json bench_json(const BenchReport& report) {
  Json json = {{"model", report.model},
               {"load_us", 1000 * report.load_ms},
               {"bind_us", 1000 * report.bind_ms},
               {"first_run_us", 1000 * report.first_ms}};
  for (const Figure& figure : kFigures) {
    json[std::string(figure.name) + "_us"] = figure_us_json(report.run_ms, figure);
  }
  json["run_count"] = report.run_ms.size();
  json["thread_count"] = report.threads;
  json["step_count"] = report.counts.steps;
  json["conversion_count"] = report.counts.conversions;
  json["totals"] = Json::array();
  for (const StepTotal& total : report.totals) {
    json["totals"].push_back(
        {{"kind", total.kind}, {"backend", total.backend}, {"step_count", total.steps}});
  }
  const std::optional<double> median_ms = figure_of(report.run_ms, kFigures[0]);
  json["placement"] =
      placement_json(report.placement, median_ms ? std::optional(1000 * *median_ms) : std::nullopt);
  json["memory"] = memory_figures_json(report.memory, report.library_bytes);
  json["dispatch_us"] = report.dispatch_ns_per_step / 1000;
  json["cache"] = cache_json(report.cache);
  json["codegen"] = Json::array();
  for (const CompileDescription& compiled : report.compiled) {
    json["codegen"].push_back(fields_json(compiled));
  }
  return json;
}

Json streams_json(const StreamsReport& report) {
  Json json = {{"model", report.model},
               {"load_us", 1000 * report.load_ms},
               {"bind_us", 1000 * report.bind_ms},
               {"stream_count", report.streams},
               {"thread_count", report.threads},
               {"requests_per_second", optional_json(requests_per_second(report))}};
  for (const Figure& figure : kStreamFigures) {
    json[std::string(figure.name) + "_us"] = figure_us_json(report.run_ms, figure);
  }
  json["run_count"] = report.run_ms.size();
  json["step_count"] = report.counts.steps;
  json["conversion_count"] = report.counts.conversions;
  json["cache"] = cache_json(report.cache);
  return json;
}

Json requests_json(const RequestsReport& report) {
  Json json = {{"model", report.model},
               {"load_us", 1000 * report.load_ms},
               {"bind_us", 1000 * report.bind_ms},
               {"first_run_us", 1000 * report.first_ms}};
  for (const Figure& figure : kRequestFigures) {
    json[std::string(figure.name) + "_us"] = figure_us_json(report.run_ms, figure);
  }
  json["run_count"] = report.run_ms.size();
  json["shape_count"] = report.shapes;
  json["thread_count"] = report.threads;
  json["step_count"] = report.counts.steps;
  json["conversion_count"] = report.counts.conversions;
  json["cache"] = cache_json(report.cache);
  return json;
}

}  // namespace tessera::cli
