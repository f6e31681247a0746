#include "cli/bench_report.h"

#include "cli/cache_report.h"

#include <array>
#include <optional>

#include "cli/memory_report.h"
#include "cli/placement_report.h"
#include "cli/quantities.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

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

std::string ms_text(double time_ms) { return time_text(time_ms / 1000); }

}  // namespace

std::string bench_text(const BenchReport& report, const TextStyle& style) {
  std::vector<Column> columns;
  std::vector<std::string> cells;
  const auto add = [&](const std::string& title, const std::string& cell) {
    columns.push_back({title, Align::Right});
    cells.push_back(cell);
  };
  add("load", ms_text(report.load_ms));
  add("bind", ms_text(report.bind_ms));
  add("first run", ms_text(report.first_ms));
  for (const Figure& figure : kFigures) {
    const std::optional<double> time = figure_of(report, figure);
    add(figure.name, time ? ms_text(*time) : "-");
  }
  add("runs", std::to_string(report.run_ms.size()));
  TextTable table(columns);
  table.add_row(cells);
  return table.text(style) +
         wrapped(steps_text(report.counts) + "; " + count_text(report.threads, "thread"), style) +
         placement_text(report.placement, figure_of(report, kFigures[0]), style);
}

Json bench_json(const BenchReport& report) {
  const auto figure_us = [&](const Figure& figure) {
    const std::optional<double> time_ms = figure_of(report, figure);
    return time_ms ? std::optional(1000 * *time_ms) : std::nullopt;
  };
  Json json = {{"model", report.model},
               {"load_us", 1000 * report.load_ms},
               {"bind_us", 1000 * report.bind_ms},
               {"first_run_us", 1000 * report.first_ms}};
  for (const Figure& figure : kFigures) {
    json[std::string(figure.name) + "_us"] = optional_json(figure_us(figure));
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
  json["placement"] = placement_json(report.placement, figure_us(kFigures[0]));
  json["memory"] = memory_figures_json(report.memory, report.library_bytes);
  json["dispatch_us"] = report.dispatch_ns_per_step / 1000;
  json["cache"] = cache_json(report.cache);
  json["codegen"] = Json::array();
  for (const CompileDescription& compiled : report.compiled) {
    json["codegen"].push_back(fields_json(compiled));
  }
  return json;
}

}  // namespace tessera::cli
