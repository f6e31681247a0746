// Between a placement of one graph and what a CostTable keeps of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "tune/cost_table.h"
#include "tune/groups.h"

namespace tessera::tuning {

// Under which a plan for the subject is found again; nullopt for graphs that no text describes (see
// group_text()). `plugins` are those that were asked, in order of preference.
std::optional<PlanKey> plan_key(const Subject& subject,
                                const std::vector<std::shared_ptr<const Plugin>>& plugins);

// The candidates of a placement, as they are found again.
std::vector<PlannedStep> planned_steps(const Subject& subject, const std::vector<int>& chosen);

// The candidates that are meant; nullopt where one of them is not offered (any more).
std::optional<std::vector<int>> find_candidates(const Subject& subject,
                                                const std::vector<PlannedStep>& steps);

// Which of them is not offered (any more), in a sentence; "" where each is.
std::string explain_missing(const Subject& subject, const std::vector<PlannedStep>& steps);

}  // namespace tessera::tuning
