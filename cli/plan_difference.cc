#include "cli/plan_difference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cli/plan_summary.h"

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

}  // namespace tessera::cli
