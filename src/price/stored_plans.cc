#include "price/stored_plans.h"

#include <map>
#include <string>
#include <utility>

#include "cache/digest.h"
#include "graph/graph.h"
#include "price/group_text.h"

namespace tessera::tuning {
namespace {

// "nhwc row_major:packed -> nhwc", in the order of its ports. Plug-ins receive it as
// tessera_wanted::ports; plugin::ports_text() must write the same.
std::string ports_text(const TuningTask& task, const Candidate& candidate) {
  std::string text;
  for (const CandidateInput& port : candidate.inputs) {
    text += (text.empty() ? "" : " ") + task.layouts.name(port.layout);
    if (port.pack != nullptr) text += ":" + std::string(port.pack->id);
  }
  text += " ->";
  for (const CandidateOutput& port : candidate.outputs) {
    text += " " + task.layouts.name(port.layout);
  }
  return text;
}

PlannedStep planned_step(const TuningTask& task, const Candidate& candidate) {
  PlannedStep step{.backend = candidate.backend(),
                   .algorithm = candidate.algorithm,
                   .layouts = ports_text(task, candidate),
                   .threads = candidate.threads == 0 ? task.threads : candidate.threads};
  for (const NodeId node : candidate.nodes) step.nodes.push_back(node.index);
  return step;
}

std::map<PlannedStep, int> offered_steps(const TuningTask& task) {
  std::map<PlannedStep, int> offered;
  for (size_t index = 0; index < task.offers.candidates.size(); ++index) {
    // If several candidates have the same key, the first one is meant, as everywhere.
    offered.emplace(planned_step(task, task.offers.candidates[index]), static_cast<int>(index));
  }
  return offered;
}

}  // namespace

std::optional<PlanKey> plan_key(const TuningTask& task,
                                const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  const std::optional<GroupText> text = group_text(task.graph, task.registry);
  if (!text) return std::nullopt;
  PlanKey key{.graph = cache::hexadecimal(cache::digest_of(text->text)),
              .threads = task.threads,
              .precision = task.precision,
              .nan = task.nan,
              .accuracy = task.accuracy};
  for (const std::shared_ptr<const Plugin>& plugin : plugins) {
    key.backends += (key.backends.empty() ? "" : ", ") + plugin->name();
    if (!plugin->ingredients().empty()) key.backends += " " + plugin->ingredients();
  }
  return key;
}

std::vector<PlannedStep> planned_steps(const TuningTask& task, const std::vector<int>& chosen) {
  std::vector<PlannedStep> steps;
  steps.reserve(chosen.size());
  for (const int index : chosen) {
    steps.push_back(planned_step(task, task.offers.candidates[static_cast<size_t>(index)]));
  }
  return steps;
}

std::optional<std::vector<int>> find_candidates(const TuningTask& task,
                                                const std::vector<PlannedStep>& steps) {
  const std::map<PlannedStep, int> offered = offered_steps(task);
  std::vector<int> chosen;
  for (const PlannedStep& step : steps) {
    const auto found = offered.find(step);
    if (found == offered.end()) return std::nullopt;
    chosen.push_back(found->second);
  }
  return chosen;
}

std::string explain_missing(const TuningTask& task, const std::vector<PlannedStep>& steps) {
  const std::map<PlannedStep, int> offered = offered_steps(task);
  for (const PlannedStep& step : steps) {
    if (offered.contains(step)) continue;
    const auto first = static_cast<size_t>(step.nodes.empty() ? 0 : step.nodes.front());
    const std::string node =
        first < task.graph.nodes.size() ? location_of(task.graph.nodes[first]) : "a node";
    return step.backend + " no longer offers " + step.algorithm + " for " + node + " from " +
           step.layouts + " on " + std::to_string(step.threads) +
           (step.threads == 1 ? " thread" : " threads");
  }
  return "";
}

}  // namespace tessera::tuning
