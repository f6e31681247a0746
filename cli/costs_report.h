// What is told of costs: candidates with times and verdicts, conversions with prices.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Tables of candidates, one for each group of nodes, the cheapest first, in lines of at most
// kTextColumns characters. Groups of which all is the same are shown once, with their number.
// `candidates` with a time or a refusal only, unless `shows_all`.
std::string candidates_text(const std::vector<CandidateDescription>& candidates, bool shows_all);

// Those that cover one of `nodes`.
std::vector<CandidateDescription> candidates_of(const std::vector<CandidateDescription>& candidates,
                                                const std::vector<std::string>& nodes);

// A table of conversions; "" where there are none.
std::string conversions_text(const std::vector<ConversionDescription>& conversions);

// "measured 120 candidates and conversions in 3.1 s (40 known before), refused 2", and the notes.
std::string tuning_text(const TuningDescription& tuning);

// One line for each reason for which candidates were refused, and how many.
std::string refused_text(const std::vector<CandidateDescription>& candidates);

Json to_json(const CandidateDescription& candidate);
Json to_json(const ConversionDescription& conversion);
Json to_json(const TuningDescription& tuning);

}  // namespace tessera::cli
