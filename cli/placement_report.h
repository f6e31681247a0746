// What is told of the choice by price: how good it is, and what would change it.
#pragma once

#include <optional>
#include <string>

#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Lines on what the plan was predicted to take and was measured to take, on the proof that no
// prediction is lower, and a table of the plans that were run; `run_ms` is what a run took, nullopt
// where none was timed. "" without `placement`.
std::string placement_text(const std::optional<PlacementDescription>& placement,
                           std::optional<double> run_ms, const TextStyle& style);

// A contender's name as people read it: "solved, round 3" is "best by timed steps, round 3"; what
// is not known here stays as it is.
std::string contender_text(const std::string& name);

// "chosen, 1.2 µs ahead", "chosen if 3.4 µs (31 %) faster", or "" where nothing was found out.
std::string margin_text(const CandidateDescription& candidate);

// The nodes for which another candidate comes closest to being chosen, in a table, and how many
// candidates nothing was found out of in `margin_seconds`; "" where nothing was looked for.
std::string closest_calls_text(const PlanDescription& plan, double margin_seconds,
                               const TextStyle& style);

}  // namespace tessera::cli
