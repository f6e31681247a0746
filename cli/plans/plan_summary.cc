#include "cli/plans/plan_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cli/output/quantities.h"

namespace tessera::cli {
namespace {

std::string layouts_of(const std::vector<PlanPort>& ports) {
  std::vector<std::string> layouts;
  for (const PlanPort& port : ports) {
    if (port.is_constant || !port.pack.empty() || port.layout.empty()) continue;
    if (std::find(layouts.begin(), layouts.end(), port.layout) == layouts.end()) {
      layouts.push_back(port.layout);
    }
  }
  std::string text;
  for (const std::string& layout : layouts) text += (text.empty() ? "" : ",") + layout;
  return text;
}

}  // namespace

bool is_conversion(const PlanStep& step) {
  return step.op == "convert" || step.op == "convert+copy";
}

bool is_copy(const PlanStep& step) { return step.backend.empty() && !is_conversion(step); }

PlanCounts count_steps(const PlanDescription& plan) {
  PlanCounts counts;
  counts.steps = static_cast<int64_t>(plan.steps.size());
  std::map<std::string, int64_t> backends;
  for (const PlanStep& step : plan.steps) {
    if (is_conversion(step)) {
      ++counts.conversions;
    } else if (is_copy(step)) {
      ++counts.copies;
    } else {
      ++backends[step.backend];
    }
  }
  counts.backends.assign(backends.begin(), backends.end());
  std::stable_sort(counts.backends.begin(), counts.backends.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return counts;
}

std::string steps_text(const PlanCounts& counts) {
  std::string parts;
  const auto add = [&](const std::string& part) { parts += (parts.empty() ? ": " : ", ") + part; };
  for (const auto& [name, steps] : counts.backends) add(std::to_string(steps) + " on " + name);
  if (counts.conversions > 0) add(count_text(counts.conversions, "conversion"));
  if (counts.copies > 0) add(count_text(counts.copies, "copy", "copies"));
  return count_text(counts.steps, "step") + parts;
}

std::string nodes_text(const std::vector<std::string>& nodes, const TextStyle& style) {
  constexpr size_t kMaxBytesOfTwo = 30;
  const bool is_short = nodes.size() == 2 && nodes[0].size() + nodes[1].size() <= kMaxBytesOfTwo;
  if (nodes.size() > 1 && style.cuts_names && !is_short) {
    return nodes[0] + " and " + std::to_string(nodes.size() - 1) + " more";
  }
  std::string text;
  for (const std::string& node : nodes) text += (text.empty() ? "" : ", ") + node;
  return text;
}

std::string op_text(const std::string& op, const TextStyle& style) {
  constexpr std::ptrdiff_t kMaxOps = 4;
  const std::ptrdiff_t count = 1 + std::count(op.begin(), op.end(), '+');
  if (!style.cuts_names || count <= kMaxOps) return op;
  const size_t head = op.find('+', op.find('+') + 1);
  return op.substr(0, head) + "+\xe2\x80\xa6" + op.substr(op.rfind('+')) + " (" +
         std::to_string(count) + " nodes)";
}

std::string layouts_text(const PlanStep& step) { return layouts_text(step.inputs, step.outputs); }

std::string layouts_text(const std::vector<PlanPort>& inputs,
                         const std::vector<PlanPort>& outputs) {
  const std::string from = layouts_of(inputs);
  std::string to = layouts_of(outputs);
  if (from.empty() || from == to) return to;
  return from + "\xe2\x86\x92" + to;
}

double gflops_of(int64_t flops, double time_us) {
  return time_us > 0 ? static_cast<double>(flops) / (time_us * 1e3) : 0;
}

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double position = percent / 100 * static_cast<double>(values.size() - 1);
  const auto lower = static_cast<size_t>(std::floor(position));
  const size_t upper = std::min(lower + 1, values.size() - 1);
  return values[lower] + (values[upper] - values[lower]) * (position - std::floor(position));
}

std::vector<std::optional<size_t>> plan_indices(const std::vector<StepRecord>& records,
                                                const PlanDescription& plan) {
  std::vector<std::optional<size_t>> indices;
  // Records are in the plan's order, which distinguishes steps with equal names.
  auto next = plan.steps.begin();
  for (const StepRecord& record : records) {
    const auto found = std::find_if(next, plan.steps.end(), [&](const PlanStep& step) {
      return record.graph.empty() && step.name == record.node && step.op == record.op;
    });
    if (found == plan.steps.end()) {
      indices.emplace_back();
      continue;
    }
    indices.emplace_back(static_cast<size_t>(found - plan.steps.begin()));
    next = found + 1;
  }
  return indices;
}

std::vector<std::optional<size_t>> nested_indices(const std::vector<StepRecord>& records,
                                                  const PlanDescription& plan) {
  std::vector<std::optional<size_t>> indices;
  std::vector<bool> is_taken(plan.nested_steps.size(), false);
  for (const StepRecord& record : records) {
    std::optional<size_t>& index = indices.emplace_back();
    for (size_t step = 0; step < plan.nested_steps.size() && !index; ++step) {
      const PlanStep& nested = plan.nested_steps[step];
      const bool is_same = nested.graph == record.graph && nested.name == record.node &&
                           nested.op == record.op && nested.algorithm == record.algorithm;
      if (is_same && !is_taken[step]) index = step;
    }
    if (index) is_taken[*index] = true;
  }
  return indices;
}

std::string kind_of(const PlanStep& step) {
  if (is_conversion(step)) return "conversion";
  return step.backend.empty() ? "copy" : "kernel";
}

std::vector<StepTotal> step_totals(const PlanDescription& plan,
                                   const std::vector<double>& step_us) {
  std::vector<StepTotal> totals;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlanStep& step = plan.steps[index];
    const std::string kind = kind_of(step);
    auto found = std::find_if(totals.begin(), totals.end(), [&](const StepTotal& total) {
      return total.kind == kind && total.backend == step.backend;
    });
    if (found == totals.end()) {
      found = totals.insert(totals.end(), {.kind = kind, .backend = step.backend});
    }
    ++found->steps;
    found->flops += step.flops;
    if (!step_us.empty()) found->time_us += step_us[index];
  }
  std::stable_sort(totals.begin(), totals.end(), [](const StepTotal& left, const StepTotal& right) {
    return std::tuple(left.time_us, left.steps) > std::tuple(right.time_us, right.steps);
  });
  return totals;
}

std::vector<RefusalGroup> group_refusals(const PlanDescription& plan) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes;
  for (const PlanStep& step : plan.steps) {
    for (const BackendRefusal& refusal : step.refusals) {
      std::vector<std::string>& list = nodes[{refusal.backend, refusal.reason}];
      if (std::find(list.begin(), list.end(), refusal.node) == list.end()) {
        list.push_back(refusal.node);
      }
    }
  }
  std::vector<RefusalGroup> groups;
  for (auto& [key, list] : nodes) groups.push_back({key.first, key.second, std::move(list)});
  std::stable_sort(groups.begin(), groups.end(), [](const auto& left, const auto& right) {
    return left.backend == right.backend ? left.nodes.size() > right.nodes.size()
                                         : left.backend < right.backend;
  });
  return groups;
}

}  // namespace tessera::cli
