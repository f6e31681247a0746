#include "cli/plans/diff_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/text_table.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

using Steps = std::vector<const PlanStep*>;

// Disjoint sets of the numbers below `count` (union-find with path halving).
class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), size_t{0});
  }
  size_t find(size_t index) {
    while (parents_[index] != index) index = parents_[index] = parents_[parents_[index]];
    return index;
  }
  // The smaller number represents both, so that sets are in the plan's order.
  void join(size_t first, size_t second) {
    const size_t one = find(first);
    const size_t other = find(second);
    parents_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<size_t> parents_;
};

// The tokens by which a step is matched.
std::vector<std::string> tokens_of(const PlanStep& step) {
  if (step.nodes.empty()) return {kind_of(step) + " of " + step.name};
  std::vector<std::string> tokens;
  for (const std::string& node : step.nodes) tokens.push_back("node " + node);
  return tokens;
}

// Steps that share a token, in the order of the plans; indices from `first.size()` on are of the
// second plan.
std::vector<std::vector<size_t>> match(const std::vector<PlanStep>& first,
                                       const std::vector<PlanStep>& second) {
  const size_t count = first.size() + second.size();
  DisjointSets sets(count);
  std::map<std::string, size_t> owners;
  for (size_t index = 0; index < count; ++index) {
    const PlanStep& step = index < first.size() ? first[index] : second[index - first.size()];
    for (const std::string& token : tokens_of(step)) {
      sets.join(owners.try_emplace(token, index).first->second, index);
    }
  }
  std::map<size_t, std::vector<size_t>> found;
  for (size_t index = 0; index < count; ++index) found[sets.find(index)].push_back(index);
  std::vector<std::vector<size_t>> matched;
  for (auto& [representative, steps] : found) matched.push_back(std::move(steps));
  return matched;
}

// A property of the steps, by the node or port that has it. A multimap, because names need not be
// unique.
using Properties = std::multimap<std::string, std::string>;

Properties properties_of(const Steps& steps,
                         const std::function<std::string(const PlanStep& step)>& property) {
  Properties properties;
  for (const PlanStep* step : steps) {
    for (const std::string& token : tokens_of(*step)) properties.emplace(token, property(*step));
  }
  return properties;
}

Properties ports_of(const Steps& steps,
                    const std::function<std::string(const PlanPort& port)>& property) {
  Properties properties;
  for (const PlanStep* step : steps) {
    // The pack of a constant belongs to the algorithm.
    const auto add = [&](const std::string& direction, const std::vector<PlanPort>& ports) {
      for (const PlanPort& port : ports) {
        if (!port.is_constant) properties.emplace(direction + port.value, property(port));
      }
    };
    add("reads ", step->inputs);
    add("writes ", step->outputs);
  }
  return properties;
}

// Whether a key that both have has different values. Numbers of values do not count: another number
// of steps is another grouping.
bool differ(const Properties& first, const Properties& second) {
  for (auto at = first.begin(); at != first.end(); at = first.upper_bound(at->first)) {
    if (!second.contains(at->first)) continue;
    const auto values = [&](const Properties& all) {
      const auto [begin, end] = all.equal_range(at->first);
      std::set<std::string> found;
      std::transform(begin, end, std::inserter(found, found.end()),
                     [](const auto& item) { return item.second; });
      return found;
    };
    if (values(first) != values(second)) return true;
  }
  return false;
}

std::multiset<std::vector<std::string>> groups_of(const Steps& steps) {
  std::multiset<std::vector<std::string>> groups;
  for (const PlanStep* step : steps) {
    std::vector<std::string> nodes = step->nodes;
    std::ranges::sort(nodes);
    groups.insert(std::move(nodes));
  }
  return groups;
}

std::vector<std::string> kinds_of(const Steps& first, const Steps& second, bool compares_threads) {
  const bool has_nodes = !(first.empty() ? second : first).front()->nodes.empty();
  if (first.empty() || (!has_nodes && first.size() < second.size())) return {"added"};
  if (second.empty() || (!has_nodes && first.size() > second.size())) return {"removed"};
  std::vector<std::string> kinds;
  const auto note = [&](const char* kind, bool is_different) {
    if (is_different) kinds.emplace_back(kind);
  };
  const auto steps_differ = [&](const auto& property) {
    return differ(properties_of(first, property), properties_of(second, property));
  };
  const auto ports_differ = [&](const auto& property) {
    return differ(ports_of(first, property), ports_of(second, property));
  };
  const bool is_regrouped = groups_of(first) != groups_of(second);
  const bool has_other_backend = steps_differ([](const PlanStep& step) { return step.backend; });
  note("fusion", is_regrouped);
  note("op", !is_regrouped && steps_differ([](const PlanStep& step) { return step.op; }));
  note("backend", has_other_backend);
  // Another backend has other algorithms, and so has another group.
  note("algorithm", !has_other_backend && !is_regrouped &&
                        steps_differ([](const PlanStep& step) { return step.algorithm; }));
  note("layout",
       ports_differ([](const PlanPort& port) { return port.layout + "@" + port.device; }));
  note("shape", ports_differ([](const PlanPort& port) { return port.type; }));
  note("threads", compares_threads && steps_differ([](const PlanStep& step) {
                    return std::to_string(step.threads);
                  }));
  return kinds;
}

std::vector<SettingChange> settings_of(const ExplainReport& first, const ExplainReport& second) {
  std::vector<SettingChange> settings;
  const auto add = [&](const std::string& setting, const std::string& one,
                       const std::string& other) {
    if (one != other && !one.empty() && !other.empty()) settings.push_back({setting, one, other});
  };
  add("threads", std::to_string(first.threads), std::to_string(second.threads));
  add("processor", first.processor, second.processor);
  add("Tessera", first.version, second.version);
  for (const auto& [library, version] : first.libraries) {
    const auto found = second.libraries.find(library);
    if (found != second.libraries.end()) add(library, version, found->second);
  }
  return settings;
}

double sum_of(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

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

PlanDifference difference_of(const ExplainReport& first, const ExplainReport& second) {
  PlanDifference difference;
  difference.settings = settings_of(first, second);
  difference.first_us = sum_of(first.step_us);
  difference.second_us = sum_of(second.step_us);
  const size_t first_count = first.plan.steps.size();
  for (const std::vector<size_t>& matched : match(first.plan.steps, second.plan.steps)) {
    StepChange change;
    Steps first_steps;
    Steps second_steps;
    for (const size_t index : matched) {
      if (index < first_count) {
        change.first_steps.push_back(index);
        change.first_us += first.step_us[index];
        first_steps.push_back(&first.plan.steps[index]);
      } else {
        change.second_steps.push_back(index - first_count);
        change.second_us += second.step_us[index - first_count];
        second_steps.push_back(&second.plan.steps[index - first_count]);
      }
    }
    change.kinds = kinds_of(first_steps, second_steps, first.threads == second.threads);
    if (change.kinds.empty()) {
      difference.unchanged_steps += change.first_steps.size();
      difference.first_unchanged_us += change.first_us;
      difference.second_unchanged_us += change.second_us;
    } else {
      difference.changes.push_back(std::move(change));
    }
  }
  std::ranges::stable_sort(difference.changes, std::greater<>(), [](const StepChange& change) {
    return std::abs(change.second_us - change.first_us);
  });
  return difference;
}

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
