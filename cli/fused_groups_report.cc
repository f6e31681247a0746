#include "cli/fused_groups_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "cli/plan_summary.h"
#include "cli/quantities.h"

namespace tessera::cli {
namespace {

// Steps that compute the same ops in the same way on as many bytes.
struct Row {
  const PlanStep* step = nullptr;  // the first of them
  int64_t count = 0;
  double time_us = 0;            // the sum of all
  double predicted_seconds = 0;  // the sum of all
  // The sum of all; nullopt if it is not known for each step.
  std::optional<double> unfused_seconds = 0;
};

std::vector<Row> rows_of(const PlanDescription& plan, const std::vector<double>& step_us) {
  std::vector<Row> rows;
  std::map<std::tuple<std::string, std::string, std::string, int64_t, int64_t>, size_t> places;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlanStep& step = plan.steps[index];
    if (!step.unfused_bytes) continue;
    const auto [place, is_new] = places.try_emplace(
        {step.op, step.backend, step.algorithm, step.bytes, *step.unfused_bytes}, rows.size());
    if (is_new) rows.push_back({.step = &step});
    Row& row = rows[place->second];
    ++row.count;
    row.time_us += step_us[index];
    row.predicted_seconds += step.predicted_seconds.value_or(0);
    row.unfused_seconds = row.unfused_seconds && step.unfused_seconds
                              ? std::optional(*row.unfused_seconds + *step.unfused_seconds)
                              : std::nullopt;
  }
  std::ranges::stable_sort(
      rows, [](const Row& left, const Row& right) { return left.time_us > right.time_us; });
  return rows;
}

}  // namespace

std::string fused_groups_text(const PlanDescription& plan, const std::vector<double>& step_us,
                              const TextStyle& style) {
  const std::vector<Row> rows = rows_of(plan, step_us);
  if (rows.empty()) return "";
  std::vector<Column> columns = {{"fused group", Align::Left, true},
                                 {"kernel", Align::Left, true},
                                 {"steps", Align::Right},
                                 {"bytes", Align::Right},
                                 {"unfused", Align::Right},
                                 {"time", Align::Right}};
  const bool has_prices = plan.placement.has_value();
  if (has_prices) {
    columns.push_back({"predicted", Align::Right});
    columns.push_back({"unfused", Align::Right});
  }
  TextTable table(std::move(columns));
  for (const Row& row : rows) {
    const PlanStep& step = *row.step;
    const auto count = static_cast<double>(row.count);
    std::vector<std::string> cells = {
        op_text(step.op, style),
        step.backend + (step.algorithm.empty() ? "" : ":" + step.algorithm),
        std::to_string(row.count),
        bytes_text(step.bytes),
        bytes_text(*step.unfused_bytes),
        time_text(1e-6 * row.time_us / count)};
    if (has_prices) {
      cells.push_back(time_text(row.predicted_seconds / count));
      cells.push_back(row.unfused_seconds ? time_text(*row.unfused_seconds / count) : "-");
    }
    table.add_row(cells);
  }
  return "\n" +
         wrapped(
             "fused groups: the bytes that one of these steps reads and writes, and its time; "
             "unfused: the same for its nodes one by one, or in smaller groups",
             style) +
         table.text(style);
}

}  // namespace tessera::cli
