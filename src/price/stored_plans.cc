#include "price/stored_plans.h"

#include <map>
#include <string>
#include <utility>

#include "cache/digest.h"
#include "graph/graph.h"
#include "price/group_text.h"

namespace tessera::tuning {
namespace {

std::map<CandidateId, int> offered_candidates(const TuningTask& task) {
  std::map<CandidateId, int> offered;
  for (size_t index = 0; index < task.offers.candidates.size(); ++index) {
    // If several candidates have the same identity, the first one is meant, as everywhere.
    offered.emplace(id_of(task.offers.candidates[index], task.layouts, task.threads),
                    static_cast<int>(index));
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

std::vector<CandidateId> planned_steps(const TuningTask& task, const std::vector<int>& chosen) {
  std::vector<CandidateId> steps;
  steps.reserve(chosen.size());
  for (const int index : chosen) {
    const Candidate& candidate = task.offers.candidates[static_cast<size_t>(index)];
    steps.push_back(id_of(candidate, task.layouts, task.threads));
  }
  return steps;
}

std::optional<std::vector<int>> find_candidates(const TuningTask& task,
                                                const std::vector<CandidateId>& steps) {
  const std::map<CandidateId, int> offered = offered_candidates(task);
  std::vector<int> chosen;
  for (const CandidateId& step : steps) {
    const auto found = offered.find(step);
    if (found == offered.end()) return std::nullopt;
    chosen.push_back(found->second);
  }
  return chosen;
}

std::string explain_missing(const TuningTask& task, const std::vector<CandidateId>& steps) {
  const std::map<CandidateId, int> offered = offered_candidates(task);
  for (const CandidateId& step : steps) {
    if (offered.contains(step)) continue;
    const auto first = static_cast<size_t>(step.nodes.empty() ? 0 : step.nodes.front());
    const std::string node =
        first < task.graph.nodes.size() ? location_of(task.graph.nodes[first]) : "a node";
    return step.backend + " no longer offers " + step.algorithm + " for " + node + " from " +
           step.ports + " on " + std::to_string(step.threads) +
           (step.threads == 1 ? " thread" : " threads");
  }
  return "";
}

}  // namespace tessera::tuning
