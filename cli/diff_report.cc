#include "cli/diff_report.h"
#include "cli/text_table.h"

#include <algorithm>
#include <cmath>

#include "cli/plan_summary.h"
#include "cli/quantities.h"
#include "cli/span.h"

namespace tessera::cli {
namespace {

constexpr const char* kArrow = " \xe2\x86\x92 ";

// "+12.3 µs"; "0" has no sign.
std::string change_text(double difference_us) {
  if (difference_us == 0) return "0";
  return (difference_us > 0 ? "+" : "-") + us_text(std::abs(difference_us));
}

bool has_kind(const StepChange& change, std::string_view kind) {
  return std::ranges::find(change.kinds, kind) != change.kinds.end();
}

// The subject of a change: its nodes, or the value that is converted.
std::string subject_of(const ExplainReport& first, const ExplainReport& second,
                       const StepChange& change, const TextStyle& style) {
  std::vector<std::string> nodes;
  const auto add_nodes = [&](const ExplainReport& report, const std::vector<size_t>& steps) {
    for (const size_t index : steps) {
      for (const std::string& node : report.plan.steps[index].nodes) {
        if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
      }
    }
  };
  add_nodes(first, change.first_steps);
  add_nodes(second, change.second_steps);
  if (!nodes.empty()) return nodes_text(nodes, style);
  return change.first_steps.empty() ? second.plan.steps[change.second_steps[0]].name
                                    : first.plan.steps[change.first_steps[0]].name;
}

// One side of a change: the backends that compute it, and the other differences.
std::string steps_text(const ExplainReport& report, const std::vector<size_t>& steps,
                       const StepChange& change, const TextStyle& style) {
  const bool shows_ops = has_kind(change, "fusion") || has_kind(change, "op") ||
                         has_kind(change, "added") || has_kind(change, "removed");
  std::string text;
  for (const size_t index : steps) {
    const PlanStep& step = report.plan.steps[index];
    std::string part = step.backend.empty() ? "copy" : step.backend;
    if (!step.algorithm.empty()) part += ":" + step.algorithm;
    if (shows_ops && !step.backend.empty()) part = op_text(step.op, style) + " " + part;
    const bool shows_layouts = has_kind(change, "layout") || is_conversion(step);
    if (shows_layouts) part += " " + layouts_text(step);
    if (has_kind(change, "shape") && !step.outputs.empty()) part += " " + step.outputs[0].type;
    if (has_kind(change, "threads")) part += " " + count_text(step.threads, "thread");
    text += (text.empty() ? "" : "; ") + part;
  }
  return text.empty() ? "none" : text;
}

std::string side_text(const char* name, const DiffSide& side, const TextStyle& style) {
  const ExplainReport& report = side.report;
  const std::string of = report.model == side.source ? "" : " of " + report.model;
  std::string text = side.source + of + (side.options.empty() ? "" : " with " + side.options) +
                     ": " + cli::steps_text(count_steps(report.plan)) + "; " +
                     count_text(report.threads, "thread");
  return labelled(name, text, 3, style);
}

std::string change_table(const ExplainReport& first, const ExplainReport& second,
                         const PlanDifference& difference, const TextStyle& style) {
  TextTable table({{"changed"},
                   {"nodes or value", Align::Left, true},
                   {"A", Align::Left, true},
                   {"B", Align::Left, true},
                   {"A time", Align::Right},
                   {"B time", Align::Right},
                   {"B - A", Align::Right}});
  for (const StepChange& change : difference.changes) {
    table.add_row({joined(change.kinds), subject_of(first, second, change, style),
                   steps_text(first, change.first_steps, change, style),
                   steps_text(second, change.second_steps, change, style),
                   change.first_steps.empty() ? "" : us_text(change.first_us),
                   change.second_steps.empty() ? "" : us_text(change.second_us),
                   change_text(change.second_us - change.first_us)});
  }
  return "\n" + table.text(style);
}

std::string total_table(const ExplainReport& first, const ExplainReport& second,
                        const PlanDifference& difference, const TextStyle& style) {
  TextTable table({{"total"},
                   {"A time", Align::Right},
                   {"B time", Align::Right},
                   {"B - A", Align::Right},
                   {"B / A", Align::Right}});
  const auto add = [&](const std::string& what, double first_us, double second_us) {
    table.add_row({what, us_text(first_us), us_text(second_us), change_text(second_us - first_us),
                   first_us > 0 ? decimal_text(second_us / first_us, 3) : ""});
  };
  const double first_changed_us = difference.first_us - difference.first_unchanged_us;
  const double second_changed_us = difference.second_us - difference.second_unchanged_us;
  if (!difference.is_equal()) add("steps that differ", first_changed_us, second_changed_us);
  if (difference.unchanged_steps > 0) {
    add(count_text(static_cast<int64_t>(difference.unchanged_steps), "equal step"),
        difference.first_unchanged_us, difference.second_unchanged_us);
  }
  if (!difference.is_equal()) add("all steps", difference.first_us, difference.second_us);
  add("a run", first.run_us, second.run_us);
  return "\n" + table.text(style);
}

Json step_json(const ExplainReport& report, size_t index) {
  const PlanStep& step = report.plan.steps[index];
  return {{"index", index},
          {"name", step.name},
          {"op", step.op},
          {"kind", kind_of(step)},
          {"backend", step.backend},
          {"algorithm", step.algorithm},
          {"thread_count", step.threads},
          {"nodes", step.nodes},
          {"layout_text", layouts_text(step)},
          {"median_us", report.step_us[index]}};
}

Json steps_json(const ExplainReport& report, const std::vector<size_t>& steps) {
  Json json = Json::array();
  for (const size_t index : steps) json.push_back(step_json(report, index));
  return json;
}

Json side_json(const DiffSide& side, double steps_us) {
  const PlanCounts counts = count_steps(side.report.plan);
  return {{"file", side.source},
          {"model", side.report.model},
          {"options", side.options},
          {"thread_count", side.report.threads},
          {"run_count", side.report.runs},
          {"median_us", side.report.run_us},
          {"steps_us", steps_us},
          {"step_count", counts.steps},
          {"conversion_count", counts.conversions}};
}

}  // namespace

std::string diff_text(const DiffSide& first, const DiffSide& second,
                      const PlanDifference& difference, const TextStyle& style) {
  std::string text = side_text("A", first, style) + side_text("B", second, style);
  for (const SettingChange& change : difference.settings) {
    text += wrapped(change.setting + ": " + change.first + kArrow + change.second, style);
  }
  text += difference.is_equal() ? "\nboth plans have the same steps\n"
                                : change_table(first.report, second.report, difference, style);
  return text + total_table(first.report, second.report, difference, style);
}

Json diff_json(const DiffSide& first, const DiffSide& second, const PlanDifference& difference) {
  Json changes = Json::array();
  for (const StepChange& change : difference.changes) {
    changes.push_back({{"kinds", change.kinds},
                       {"a_steps", steps_json(first.report, change.first_steps)},
                       {"b_steps", steps_json(second.report, change.second_steps)},
                       {"a_us", change.first_us},
                       {"b_us", change.second_us},
                       {"difference_us", change.second_us - change.first_us}});
  }
  Json settings = Json::array();
  for (const SettingChange& change : difference.settings) {
    settings.push_back(
        {{"setting", change.setting}, {"a_text", change.first}, {"b_text", change.second}});
  }
  return {{"is_equal", difference.is_equal()},
          {"plan_a", side_json(first, difference.first_us)},
          {"plan_b", side_json(second, difference.second_us)},
          {"settings", std::move(settings)},
          {"step_changes", std::move(changes)},
          {"equal_step_count", difference.unchanged_steps},
          {"equal_a_us", difference.first_unchanged_us},
          {"equal_b_us", difference.second_unchanged_us}};
}

}  // namespace tessera::cli
