// Reports about a placement chosen by price: its quality, and what would change it.
#pragma once

#include <optional>
#include <string>

#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Describes the predicted and the measured time of the plan, the proof that no plan has a lower
// prediction, and the plans that were run, in a table. `run_ms` is the time of a run, nullopt if
// none was timed. "" without `placement`.
std::string placement_text(const std::optional<PlacementDescription>& placement,
                           std::optional<double> run_ms, const TextStyle& style);

// "native:winograd", "reference"
std::string name_of(const CandidateDescription& candidate);

// How a contender was found, in words for users: "best by timed steps, round 3".
std::string contender_text(const ContenderDescription& contender);

// "chosen, 1.2 µs ahead", "chosen if 3.4 µs (31 %) faster", or "" if the margin is unknown.
std::string margin_text(const CandidateDescription& candidate);

// A table of the nodes for which another candidate comes closest to being chosen, and the number of
// candidates whose margins were not found within `margin_seconds`; "" if margins were not computed.
std::string closest_calls_text(const PlanDescription& plan, double margin_seconds,
                               const TextStyle& style);

}  // namespace tessera::cli
