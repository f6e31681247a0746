#include "cli/bench_report.h"

#include "cli/cache_report.h"

#include <array>
#include <optional>

#include "cli/memory_report.h"
#include "cli/placement_report.h"
#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

std::string count_text(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

struct Figure {
  const char* name;
  double percent;
};

constexpr std::array kFigures = {Figure{"median", 50}, Figure{"min", 0}, Figure{"p90", 90},
                                 Figure{"p99", 99}};

std::optional<double> figure_of(const BenchReport& report, const Figure& figure) {
  if (report.run_ms.empty()) return std::nullopt;
  return percentile(report.run_ms, figure.percent);
}

// Three digits that count: a small network takes microseconds.
std::string time_text(double time_ms) { return decimal_text(time_ms, time_ms < 10 ? 3 : 2); }

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::vector<Column> columns;
  std::vector<std::string> cells;
  const auto add = [&](const std::string& title, const std::string& cell) {
    columns.push_back({title, Align::Right});
    cells.push_back(cell);
  };
  add("load ms", time_text(report.load_ms));
  add("bind ms", time_text(report.bind_ms));
  add("first ms", time_text(report.first_ms));
  for (const Figure& figure : kFigures) {
    const std::optional<double> time = figure_of(report, figure);
    add(std::string(figure.name) + " ms", time ? time_text(*time) : "-");
  }
  add("runs", std::to_string(report.run_ms.size()));
  TextTable table(columns);
  table.add_row(cells);
  std::string counts = count_text(report.counts.steps, "step") + " (" +
                       count_text(report.counts.conversions, "conversion") + ")";
  if (!report.counts.backends.empty()) counts += ": " + backend_counts_text(report.counts);
  counts += "; " + count_text(report.threads, "thread");
  return table.text() + shorten(printable(counts), kTextColumns) + "\n" +
         placement_text(report.placement, figure_of(report, kFigures[0]));
}

Json bench_json(const BenchReport& report) {
  Json json = {{"model", report.model},
               {"load_ms", report.load_ms},
               {"bind_ms", report.bind_ms},
               {"first_ms", report.first_ms}};
  for (const Figure& figure : kFigures) {
    const std::optional<double> time = figure_of(report, figure);
    json[std::string(figure.name) + "_ms"] = time ? Json(*time) : Json(nullptr);
  }
  json["runs"] = report.run_ms.size();
  json["threads"] = report.threads;
  json["steps"] = report.counts.steps;
  json["conversions"] = report.counts.conversions;
  json["backends"] = Json::object();
  for (const auto& [name, steps] : report.counts.backends) json["backends"][name] = steps;
  json["placement"] = placement_json(report.placement, figure_of(report, kFigures[0]));
  json["memory"] = memory_figures_json(report.memory, report.library_bytes);
  json["dispatch_ns_per_step"] = report.dispatch_ns_per_step;
  json["cache"] = cache_json(report.cache);
  return json;
}

}  // namespace tessera::cli
