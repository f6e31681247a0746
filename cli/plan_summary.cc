#include "cli/plan_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

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

std::string backend_of(const PlanStep& step) {
  return step.backend.empty() ? "tessera" : step.backend;
}

PlanCounts count_steps(const PlanDescription& plan) {
  PlanCounts counts;
  counts.steps = static_cast<int64_t>(plan.steps.size());
  std::map<std::string, int64_t> backends;
  for (const PlanStep& step : plan.steps) {
    if (is_conversion(step)) {
      ++counts.conversions;
    } else {
      ++backends[backend_of(step)];
    }
  }
  counts.backends.assign(backends.begin(), backends.end());
  std::stable_sort(counts.backends.begin(), counts.backends.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return counts;
}

std::string backend_counts_text(const PlanCounts& counts) {
  std::string text;
  for (const auto& [name, steps] : counts.backends) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(steps);
  }
  return text;
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
  // Records stand in the plan's order, which also tells steps of one name apart.
  auto next = plan.steps.begin();
  for (const StepRecord& record : records) {
    const auto found = std::find_if(next, plan.steps.end(), [&](const PlanStep& step) {
      return step.name == record.node && step.op == record.op;
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

std::vector<TimeShare> time_shares(const PlanDescription& plan,
                                   const std::vector<double>& step_us) {
  std::vector<TimeShare> shares;
  TimeShare conversions{.name = "conversions"};
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlanStep& step = plan.steps[index];
    TimeShare* share = &conversions;
    if (!is_conversion(step)) {
      const std::string name = backend_of(step);
      auto found = std::find_if(shares.begin(), shares.end(),
                                [&](const TimeShare& other) { return other.name == name; });
      if (found == shares.end()) found = shares.insert(shares.end(), {.name = name});
      share = &*found;
    }
    ++share->steps;
    share->flops += step.flops;
    share->time_us += step_us[index];
  }
  std::stable_sort(shares.begin(), shares.end(), [](const TimeShare& left, const TimeShare& right) {
    return left.time_us > right.time_us;
  });
  if (conversions.steps > 0) shares.push_back(conversions);
  return shares;
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
