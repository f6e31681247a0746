#include "cli/explain_report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/costs_report.h"
#include "cli/placement_report.h"
#include "cli/plan_summary.h"
#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

// More make no message clearer; --json and --node have all.
constexpr size_t kListedNodes = 10;
constexpr size_t kExampleNodes = 3;
constexpr size_t kShownGroups = 12;

std::string time_text(double time_us) { return decimal_text(time_us, time_us < 1000 ? 1 : 0); }

// The price that the choice reckoned with.
std::string predicted_text(const PlanStep& step) {
  return time_text(1e6 * step.predicted_seconds.value_or(0));
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

std::string count_text(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string shown_line(const std::string& text) {
  return shorten(printable(text), kTextColumns) + "\n";
}

std::string header_text(const ExplainReport& report) {
  const PlanDescription& plan = report.plan;
  const PlanCounts counts = count_steps(plan);
  return shown_line(report.model) +
         shown_line(count_text(counts.steps, "step") + ", " +
                    count_text(counts.conversions, "conversion") + " among them; " +
                    decimal_text(report.run_us / 1000, 3) + " ms, the median of " +
                    count_text(report.runs, "run") + "; " + count_text(report.threads, "thread")) +
         shown_line("memory: " + bytes_text(plan.arena_bytes) + " for inner values, " +
                    bytes_text(plan.pack_bytes) + " of packed weights, " +
                    bytes_text(plan.library_bytes) + " of the libraries' own") +
         (plan.tuning.measured > 0 ? tuning_text(plan.tuning) : "") +
         placement_text(plan.placement, report.run_us / 1000);
}

std::string steps_text(const ExplainReport& report) {
  std::vector<Column> columns = {{"step", Align::Right},           {"name", Align::Left, true},
                                 {"op", Align::Left, true},        {"backend"},
                                 {"algorithm", Align::Left, true}, {"layouts", Align::Left, true},
                                 {"\xc2\xb5s", Align::Right}};
  const bool has_prices = report.plan.placement.has_value();
  if (has_prices) columns.push_back({"predicted", Align::Right});
  columns.push_back({"share", Align::Right});
  columns.push_back({"GFLOP/s", Align::Right});
  TextTable table(std::move(columns));
  const double total_us = total_of(report.step_us);
  for (size_t index = 0; index < report.plan.steps.size(); ++index) {
    const PlanStep& step = report.plan.steps[index];
    const double time_us = report.step_us[index];
    std::vector<std::string> cells = {std::to_string(index), step.name,      step.op,
                                      backend_of(step),      step.algorithm, layouts_text(step),
                                      time_text(time_us)};
    if (has_prices) cells.push_back(predicted_text(step));
    cells.push_back(share_text(time_us, total_us));
    cells.push_back(gflops_text(step.flops, time_us));
    table.add_row(cells);
  }
  return "\n" + table.text();
}

std::string port_layout(const std::vector<PlanPort>& ports) {
  return ports.empty() ? "" : ports[0].layout;
}

std::string conversion_steps_text(const ExplainReport& report) {
  std::vector<Column> columns = {{"step", Align::Right},
                                 {"conversion of", Align::Left, true},
                                 {"from", Align::Left, true},
                                 {"to", Align::Left, true},
                                 {"backend"},
                                 {"bytes", Align::Right},
                                 {"\xc2\xb5s", Align::Right}};
  const bool has_prices = report.plan.placement.has_value();
  if (has_prices) columns.push_back({"predicted", Align::Right});
  TextTable table(std::move(columns));
  bool has_rows = false;
  for (size_t index = 0; index < report.plan.steps.size(); ++index) {
    const PlanStep& step = report.plan.steps[index];
    if (!is_conversion(step)) continue;
    has_rows = true;
    std::vector<std::string> cells = {
        std::to_string(index),           step.name,        port_layout(step.inputs),
        port_layout(step.outputs),       backend_of(step), bytes_text(step.bytes),
        time_text(report.step_us[index])};
    if (has_prices) cells.push_back(predicted_text(step));
    table.add_row(cells);
  }
  return has_rows ? "\n" + table.text() : "";
}

std::string totals_text(const ExplainReport& report) {
  TextTable table({{"by", Align::Left, true},
                   {"steps", Align::Right},
                   {"\xc2\xb5s", Align::Right},
                   {"share", Align::Right},
                   {"GFLOP/s", Align::Right}});
  const double total_us = total_of(report.step_us);
  for (const TimeShare& share : time_shares(report.plan, report.step_us)) {
    table.add_row({share.name, std::to_string(share.steps), time_text(share.time_us),
                   share_text(share.time_us, total_us), gflops_text(share.flops, share.time_us)});
  }
  return "\n" + table.text();
}

std::string example_text(const std::vector<std::string>& nodes) {
  std::string text;
  for (size_t index = 0; index < std::min(nodes.size(), kExampleNodes); ++index) {
    text += (text.empty() ? "" : ", ") + nodes[index];
  }
  return text + (nodes.size() > kExampleNodes ? ", ..." : "");
}

std::string refusals_text(const PlanDescription& plan) {
  const std::vector<RefusalGroup> groups = group_refusals(plan);
  std::string text;
  std::string backend;
  size_t shown = 0;
  const auto add_rest = [&] {
    if (shown > kShownGroups) {
      text += "  and for " + count_text(static_cast<int64_t>(shown - kShownGroups), "more reason") +
              " (--node NAME, --json)\n";
    }
  };
  for (const RefusalGroup& group : groups) {
    if (text.empty() || group.backend != backend) {
      add_rest();
      text += "\n" + shown_line("refused by " + group.backend);
      backend = group.backend;
      shown = 0;
    }
    if (++shown > kShownGroups) continue;
    text += wrapped(
        count_text(static_cast<int64_t>(group.nodes.size()), "node") + ": " + group.reason, "  ");
    text += "    " + shorten(printable(example_text(group.nodes)), kTextColumns - 4) + "\n";
  }
  add_rest();
  return text;
}

std::string port_text(const char* kind, const PlanPort& port) {
  const std::string constant = port.is_constant ? ", constant" : "";
  const std::string density =
      port.density ? " (density at most " + decimal_text(100 * *port.density, 3) + " %)" : "";
  const std::string pack = port.pack.empty() ? "" : ", packed as " + port.pack;
  return wrapped(std::string(kind) + " '" + port.value + "': " + port.type + ", " + port.layout +
                     density + constant + pack,
                 "  ");
}

std::string work_text(const PlanStep& step, double time_us, double total_us) {
  std::string text = time_text(time_us) + " \xc2\xb5s";
  if (total_us > 0) text += " (" + share_text(time_us, total_us) + ")";
  const std::string gflops = gflops_text(step.flops, time_us);
  if (!gflops.empty()) text += ", " + gflops + " GFLOP/s";
  text += "; " + quantity_text(static_cast<double>(step.flops)) + " FLOPs, " +
          bytes_text(step.bytes) + " read and written, " + bytes_text(step.workspace_bytes) +
          " of workspace";
  return text + (step.is_in_place ? ", in place" : "");
}

std::string step_text(const ExplainReport& report, size_t index) {
  const PlanStep& step = report.plan.steps[index];
  std::string title = "step " + std::to_string(index) + " '" + step.name + "' (" + step.op +
                      ") on " + backend_of(step);
  if (!step.algorithm.empty()) title += ", " + step.algorithm;
  std::string text = "\n" + wrapped(title);
  text += wrapped(work_text(step, report.step_us[index], total_of(report.step_us)), "  ");
  if (step.nodes.size() > 1) {
    std::string nodes;
    for (const std::string& node : step.nodes) nodes += (nodes.empty() ? "'" : ", '") + node + "'";
    text += wrapped("covers " + nodes, "  ");
  }
  for (const PlanPort& port : step.inputs) text += port_text("input", port);
  for (const PlanPort& port : step.outputs) text += port_text("output", port);
  for (const BackendRefusal& refusal : step.refusals) {
    text += wrapped(refusal.backend + " refused '" + refusal.node + "': " + refusal.reason, "  ");
  }
  return text;
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
  size_t listed = 0;
  for (const PlanStep& step : plan.steps) {
    if (is_conversion(step)) continue;
    if (++listed > kListedNodes) break;
    list += (list.empty() ? "'" : ", '") + step.name + "'";
  }
  if (listed > kListedNodes) list += ", ...";
  throw Error(ErrorKind::InvalidArgument, "--node '" + name + "'",
              list.empty() ? "the plan has no steps"
                           : "no step covers such a node; there are " + list +
                                 " (passes may have removed it: tessera inspect --passes)");
}

std::string explain_text(const ExplainReport& report) {
  std::string text = header_text(report);
  if (report.plan.steps.empty()) return text;
  return text + steps_text(report) + conversion_steps_text(report) + totals_text(report) +
         closest_calls_text(report.plan) + refusals_text(report.plan);
}

std::string explain_costs_text(const ExplainReport& report, const std::vector<size_t>& steps) {
  if (report.plan.candidates.empty()) {
    return "\n" + wrapped(
                      "candidates: nothing was measured; --optimize measures, --costs FILE "
                      "takes what `tessera tune` measured");
  }
  const std::vector<std::string> nodes = nodes_of(report.plan, steps);
  return candidates_text(candidates_of(report.plan.candidates, nodes), /*shows_all=*/true) +
         conversions_text(report.plan.conversions);
}

std::vector<std::string> nodes_of(const PlanDescription& plan, const std::vector<size_t>& steps) {
  std::vector<std::string> nodes;
  for (const size_t step : steps) {
    nodes.insert(nodes.end(), plan.steps[step].nodes.begin(), plan.steps[step].nodes.end());
  }
  return nodes;
}

std::string explain_steps_text(const ExplainReport& report, const std::vector<size_t>& steps) {
  std::string text = header_text(report);
  for (const size_t index : steps) text += step_text(report, index);
  return text;
}

}  // namespace tessera::cli
