// JSON for the parts of plans and their costs: the objects that docs/formats/json.md calls
// Candidate, Conversion, Tuning and Placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "tessera/tessera.h"

namespace tessera::cli {

Json to_json(const CandidateDescription& candidate);
Json to_json(const std::vector<CandidateDescription>& candidates);
Json to_json(const ConversionDescription& conversion);
Json to_json(const std::vector<ConversionDescription>& conversions);
Json to_json(const TuningDescription& tuning);

// Unknown values are null. If `run_us` has a value, it replaces the time measured during binding.
Json placement_json(const std::optional<PlacementDescription>& placement,
                    std::optional<double> run_us);

}  // namespace tessera::cli
