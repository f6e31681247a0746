// Converts between a placement of a graph and its stored form in a CostTable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "price/cost_table.h"
#include "price/groups.h"

namespace tessera::tuning {

// The key of a plan for `task`; nullopt for graphs without a text (see group_text()).
// `plugins` are those that were asked, in order of preference.
std::optional<PlanKey> plan_key(const TuningTask& task,
                                const std::vector<std::shared_ptr<const Plugin>>& plugins);

// The stored form of the candidates of a placement.
std::vector<CandidateId> planned_steps(const TuningTask& task, const std::vector<int>& chosen);

// The candidates of a stored plan; nullopt if one of them is no longer offered.
std::optional<std::vector<int>> find_candidates(const TuningTask& task,
                                                const std::vector<CandidateId>& steps);

// Which of them is no longer offered, as a sentence; "" if all are.
std::string explain_missing(const TuningTask& task, const std::vector<CandidateId>& steps);

}  // namespace tessera::tuning
