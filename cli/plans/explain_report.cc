#include "cli/plans/explain_report.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/errors/likely_name.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/text_table.h"
#include "cli/plans/costs_report.h"
#include "cli/plans/placement_report.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

// Longer lists make no message clearer; --json and --node print everything.
constexpr size_t kListedNodes = 10;
constexpr size_t kExampleNodes = 3;
constexpr size_t kShownGroups = 12;

// The price that the choice used for this step.
std::string predicted_text(const PlanStep& step) {
  return time_text(step.predicted_seconds.value_or(0));
}

double total_of(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

std::string share_text(double time_us, double total_us) {
  return total_us > 0 ? decimal_text(100 * time_us / total_us, 1) + " %" : "";
}

std::string gflops_text(int64_t flops, double time_us) {
  const double gflops = gflops_of(flops, time_us);
  return gflops > 0 ? decimal_text(gflops, gflops < 100 ? 1 : 0) : "";
}

std::string line(const std::string& text, const TextStyle& style) {
  return fitted(text, style) + "\n";
}

std::string run_text(const ExplainReport& report, const TextStyle& style) {
  return wrapped(
      "a run takes " + us_text(report.run_us) + ", the median of " + count_text(report.runs, "run"),
      style);
}

std::string device_memory_text(const MemoryDescription& memory, const TextStyle& style) {
  std::string text;
  for (const DeviceMemoryDescription& device : memory.devices) {
    text +=
        wrapped("memory of " + device.device + ": " + bytes_text(device.arena_bytes) +
                    " for intermediate values, " + bytes_text(device.weight_bytes) + " for weights",
                style);
  }
  return text;
}

std::string sizes_text(const PlanDescription& plan, const TextStyle& style) {
  const auto taken = std::ranges::count_if(
      plan.steps, [](const PlanStep& step) { return step.built_for != "all"; });
  return wrapped("sizes: " + std::to_string(taken) + " of " +
                     count_text(std::ssize(plan.steps), "step") + " run with other sizes, too",
                 style);
}

std::string header_text(const ExplainReport& report, const TextStyle& style) {
  const PlanDescription& plan = report.plan;
  const bool has_tuning = plan.tuning.measured > 0 || plan.tuning.offered > 0;
  return line(report.model, style) +
         wrapped(steps_text(count_steps(plan)) + "; " + count_text(report.threads, "thread"),
                 style) +
         (plan.placement ? "" : run_text(report, style)) +
         wrapped("memory: " + bytes_text(plan.arena_bytes) + " for intermediate values, " +
                     bytes_text(plan.pack_bytes) + " for packed weights, " +
                     bytes_text(plan.library_bytes) + " inside the libraries",
                 style) +
         device_memory_text(plan.memory, style) + sizes_text(plan, style) +
         (has_tuning ? tuning_text(plan.tuning, style) : "") +
         placement_text(plan.placement, report.run_us / 1000, style);
}

std::string location_of(const PlanStep& step) {
  return "node '" + step.name + "' (" + step.op + "), ";
}

// Whether `nested` is of a nested graph of the node that `step` runs.
bool is_within(const PlanStep& nested, const PlanStep& step) {
  return nested.graph.starts_with(location_of(step));
}

// A row below that of `step`, with the number of runs in place of an index.
std::vector<std::string> nested_cells(const PlanStep& nested, const PlanStep& step,
                                      const ExplainReport::NestedTime& time, bool has_prices,
                                      const TextStyle& style) {
  const std::string name = nested.nodes.empty() ? nested.name : nodes_text(nested.nodes, style);
  std::vector<std::string> cells = {
      time.runs > 0 ? std::to_string(time.runs) + "x" : "",
      "  " + nested.graph.substr(location_of(step).size()) + ": " + name,
      op_text(nested.op, style),
      nested.backend,
      nested.algorithm,
      layouts_text(nested),
      time.runs > 0 ? us_text(time.time_us) : ""};
  if (has_prices) cells.push_back(nested.predicted_seconds ? predicted_text(nested) : "");
  cells.push_back(gflops_text(nested.flops * time.runs, time.time_us));
  return cells;
}

std::string step_table(const ExplainReport& report, const TextStyle& style) {
  std::vector<Column> columns = {{"step", Align::Right},
                                 {"node or value", Align::Left, true},
                                 {"op", Align::Left, true},
                                 {"backend"},
                                 {"algorithm", Align::Left, true},
                                 {"layouts", Align::Left, true},
                                 {"time", Align::Right}};
  const bool has_prices = report.plan.placement.has_value();
  if (has_prices) columns.push_back({"predicted", Align::Right});
  columns.push_back({"GFLOP/s", Align::Right});
  TextTable table(std::move(columns));
  for (size_t index = 0; index < report.plan.steps.size(); ++index) {
    const PlanStep& step = report.plan.steps[index];
    const double time_us = report.step_us[index];
    const std::string name = step.nodes.empty() ? step.name : nodes_text(step.nodes, style);
    std::vector<std::string> cells = {std::to_string(index),   name,
                                      op_text(step.op, style), step.backend,
                                      step.algorithm,          layouts_text(step),
                                      us_text(time_us)};
    if (has_prices) cells.push_back(predicted_text(step));
    cells.push_back(gflops_text(step.flops, time_us));
    table.add_row(cells);
    for (size_t nested = 0; nested < report.plan.nested_steps.size(); ++nested) {
      const PlanStep& inner = report.plan.nested_steps[nested];
      if (!is_within(inner, step)) continue;
      table.add_row(nested_cells(inner, step, nested_time(report, nested), has_prices, style));
    }
  }
  return "\n" + table.text(style);
}

std::string port_layout(const std::vector<PlanPort>& ports) {
  return ports.empty() ? "" : ports[0].layout;
}

std::string conversion_steps_text(const ExplainReport& report, const TextStyle& style) {
  std::vector<Column> columns = {{"step", Align::Right},
                                 {"conversion of", Align::Left, true},
                                 {"from", Align::Left, true},
                                 {"to", Align::Left, true},
                                 {"backend"},
                                 {"read+written", Align::Right},
                                 {"time", Align::Right}};
  const bool has_prices = report.plan.placement.has_value();
  if (has_prices) columns.push_back({"predicted", Align::Right});
  TextTable table(std::move(columns));
  bool has_rows = false;
  for (size_t index = 0; index < report.plan.steps.size(); ++index) {
    const PlanStep& step = report.plan.steps[index];
    if (!is_conversion(step)) continue;
    has_rows = true;
    std::vector<std::string> cells = {
        std::to_string(index),         step.name,    port_layout(step.inputs),
        port_layout(step.outputs),     step.backend, bytes_text(step.bytes),
        us_text(report.step_us[index])};
    if (has_prices) cells.push_back(predicted_text(step));
    table.add_row(cells);
  }
  return has_rows ? "\n" + table.text(style) : "";
}

std::string total_name(const StepTotal& total) {
  if (total.kind == "kernel") return total.backend;
  return total.kind == "copy" ? "copies" : "conversions by " + total.backend;
}

std::string totals_text(const ExplainReport& report, const TextStyle& style) {
  TextTable table({{"backend", Align::Left, true},
                   {"steps", Align::Right},
                   {"time", Align::Right},
                   {"share", Align::Right},
                   {"GFLOP/s", Align::Right}});
  const double total_us = total_of(report.step_us);
  std::vector<StepTotal> totals = step_totals(report.plan, report.step_us);
  std::stable_partition(totals.begin(), totals.end(),
                        [](const StepTotal& total) { return total.kind == "kernel"; });
  for (const StepTotal& total : totals) {
    table.add_row({total_name(total), std::to_string(total.steps), us_text(total.time_us),
                   share_text(total.time_us, total_us), gflops_text(total.flops, total.time_us)});
  }
  return "\n" + table.text(style);
}

std::string example_text(const std::vector<std::string>& nodes) {
  std::string text;
  for (size_t index = 0; index < std::min(nodes.size(), kExampleNodes); ++index) {
    text += (text.empty() ? "" : ", ") + nodes[index];
  }
  return text + (nodes.size() > kExampleNodes ? ", ..." : "");
}

std::string refusals_text(const PlanDescription& plan, const TextStyle& style) {
  const std::vector<RefusalGroup> groups = group_refusals(plan);
  std::string text;
  std::string backend;
  size_t shown = 0;
  const auto add_rest = [&] {
    if (shown > kShownGroups) {
      text +=
          wrapped("and " + count_text(static_cast<int64_t>(shown - kShownGroups), "more reason") +
                      " (--node NAME or --json shows all)",
                  style, "  ");
    }
  };
  for (const RefusalGroup& group : groups) {
    if (text.empty() || group.backend != backend) {
      add_rest();
      text += "\n" + line("refused by " + group.backend, style);
      backend = group.backend;
      shown = 0;
    }
    if (++shown > kShownGroups) continue;
    text +=
        wrapped(count_text(static_cast<int64_t>(group.nodes.size()), "node") + ": " + group.reason,
                style, "  ");
    text += "    " + fitted(example_text(group.nodes), style, 4) + "\n";
  }
  add_rest();
  return text;
}

std::string port_text(const char* kind, const PlanPort& port, const TextStyle& style) {
  const std::string constant = port.is_constant ? ", constant" : "";
  const std::string density =
      port.density ? " (density at most " + decimal_text(100 * *port.density, 3) + " %)" : "";
  // The form of a pack matters only to the library; --json has it.
  const std::string pack = port.pack.empty() ? "" : ", packed";
  return wrapped(std::string(kind) + " '" + port.value + "': " + port.type + ", " + port.layout +
                     density + constant + pack,
                 style, "  ");
}

std::string work_text(const PlanStep& step, double time_us, double total_us) {
  std::string text = us_text(time_us);
  if (total_us > 0) text += " (" + share_text(time_us, total_us) + " of all steps)";
  const std::string gflops = gflops_text(step.flops, time_us);
  if (!gflops.empty()) text += ", " + gflops + " GFLOP/s";
  text += "; " + quantity_text(static_cast<double>(step.flops)) + " FLOPs, " +
          bytes_text(step.bytes) + " read and written, " + bytes_text(step.workspace_bytes) +
          " of workspace";
  return text + (step.is_in_place ? ", in place" : "");
}

// The bytes and the time that the nodes of a fused group would need without fusion.
std::string unfused_text(const PlanStep& step) {
  std::string text = "unfused, " + bytes_text(*step.unfused_bytes) + " would be read and written";
  if (step.unfused_seconds) {
    text += " in " + time_text(*step.unfused_seconds) +
            " (predicted for this step: " + predicted_text(step) + ")";
  }
  return text;
}

std::string step_text(const ExplainReport& report, size_t index, const TextStyle& style) {
  const PlanStep& step = report.plan.steps[index];
  std::string title = "step " + std::to_string(index) + " '" + step.name + "' (" + step.op + ")" +
                      (step.backend.empty() ? ", by Tessera itself" : " on " + step.backend);
  if (!step.algorithm.empty()) title += ", " + step.algorithm;
  std::string text = "\n" + wrapped(title, style);
  text += wrapped(work_text(step, report.step_us[index], total_of(report.step_us)), style, "  ");
  if (step.nodes.size() > 1) {
    std::string nodes;
    for (const std::string& node : step.nodes) nodes += (nodes.empty() ? "'" : ", '") + node + "'";
    text += wrapped("covers " + nodes, style, "  ");
  }
  if (step.unfused_bytes) text += wrapped(unfused_text(step), style, "  ");
  for (const PlanPort& port : step.inputs) text += port_text("input", port, style);
  for (const PlanPort& port : step.outputs) text += port_text("output", port, style);
  for (const BackendRefusal& refusal : step.refusals) {
    text += wrapped(refusal.backend + " refused '" + refusal.node + "': " + refusal.reason, style,
                    "  ");
  }
  return text;
}

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

std::vector<size_t> find_steps(const PlanDescription& plan, const std::string& name) {
  const auto steps_where = [&](const auto& is_wanted) {
    std::vector<size_t> found;
    for (size_t index = 0; index < plan.steps.size(); ++index) {
      if (is_wanted(plan.steps[index])) found.push_back(index);
    }
    return found;
  };
  const auto has_name = [&](const PlanStep& step) {
    const auto makes = [&](const PlanPort& port) { return port.value == name; };
    return step.name == name ||
           std::find(step.nodes.begin(), step.nodes.end(), name) != step.nodes.end() ||
           std::any_of(step.outputs.begin(), step.outputs.end(), makes);
  };
  std::vector<size_t> found = steps_where(has_name);
  if (found.empty() && name.ends_with('*')) {
    const std::string_view prefix = std::string_view(name).substr(0, name.size() - 1);
    const auto begins = [&](const std::string& node) { return node.starts_with(prefix); };
    found = steps_where([&](const PlanStep& step) {
      return std::any_of(step.nodes.begin(), step.nodes.end(), begins);
    });
  }
  if (!found.empty()) return found;
  std::string list;
  std::vector<std::string> names;
  size_t listed = 0;
  for (const PlanStep& step : plan.steps) {
    if (is_conversion(step)) continue;
    names.insert(names.end(), step.nodes.begin(), step.nodes.end());
    if (++listed > kListedNodes) continue;
    list += (list.empty() ? "'" : ", '") + step.name + "'";
  }
  if (listed > kListedNodes) list += ", ...";
  throw Error(ErrorKind::InvalidArgument, "--node '" + name + "'",
              list.empty() ? "the plan has no steps"
                           : "no step covers such a node; there are " + list +
                                 " (passes may have removed it: tessera inspect --passes)" +
                                 did_you_mean(name, names));
}

std::string explain_text(const ExplainReport& report, const TextStyle& style) {
  std::string text = header_text(report, style);
  if (report.plan.steps.empty()) return text;
  return text + step_table(report, style) + conversion_steps_text(report, style) +
         fused_groups_text(report.plan, report.step_us, style) + totals_text(report, style) +
         closest_calls_text(report.plan, report.margin_seconds, style) +
         refusals_text(report.plan, style);
}

std::string explain_costs_text(const ExplainReport& report, const std::vector<size_t>& steps,
                               const TextStyle& style) {
  if (report.plan.candidates.empty()) {
    return "\n" + wrapped(
                      "candidates: nothing was measured; --optimize measures, --costs FILE "
                      "takes what `tessera tune` measured",
                      style);
  }
  const std::vector<std::string> nodes = nodes_of(report.plan, steps);
  return candidates_text(candidates_of(report.plan.candidates, nodes), /*shows_all=*/true, style) +
         conversions_text(report.plan.conversions, style);
}

ExplainReport::NestedTime nested_time(const ExplainReport& report, size_t step) {
  return step < report.nested_times.size() ? report.nested_times[step]
                                           : ExplainReport::NestedTime{};
}

std::vector<std::string> nodes_of(const PlanDescription& plan, const std::vector<size_t>& steps) {
  std::vector<std::string> nodes;
  for (const size_t step : steps) {
    nodes.insert(nodes.end(), plan.steps[step].nodes.begin(), plan.steps[step].nodes.end());
  }
  return nodes;
}

std::string explain_steps_text(const ExplainReport& report, const std::vector<size_t>& steps,
                               const TextStyle& style) {
  std::string text = header_text(report, style);
  for (const size_t index : steps) text += step_text(report, index, style);
  return text;
}

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
