// Reports about costs: candidates with times and verdicts, conversions with prices.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Tables of candidates, one for each group of nodes, cheapest first. Identical groups are shown
// once, with their number. Unless `shows_all`, only candidates with a time or a refusal are shown.
std::string candidates_text(const std::vector<CandidateDescription>& candidates, bool shows_all,
                            const TextStyle& style);

// The candidates that cover at least one of `nodes`.
std::vector<CandidateDescription> candidates_of(const std::vector<CandidateDescription>& candidates,
                                                const std::vector<std::string>& nodes);

// A table of conversions; "" if there are none.
std::string conversions_text(const std::vector<ConversionDescription>& conversions,
                             const TextStyle& style);

// "measured 120 kernels and conversions in 3.100 s, refused 2; 40 more were known", and the notes.
std::string tuning_text(const TuningDescription& tuning, const TextStyle& style);

// One line for each reason for refusals, with the number of refused candidates.
std::string refused_text(const std::vector<CandidateDescription>& candidates,
                         const TextStyle& style);

}  // namespace tessera::cli
