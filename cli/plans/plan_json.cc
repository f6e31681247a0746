#include "cli/plans/plan_json.h"

#include <algorithm>
#include <cmath>

#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

// Shorter times cannot be distinguished from 0.
constexpr double kNothingSeconds = 5e-8;

// Says how to read behind_us and ahead_us, because JSON has no infinity.
const char* margin_key(const CandidateDescription& candidate) {
  const std::optional<double>& behind = candidate.behind_seconds;
  const std::optional<double>& ahead = candidate.ahead_seconds;
  if (candidate.is_chosen) {
    return ahead && !std::isfinite(*ahead) ? "only_choice" : "chosen";
  }
  if (!behind) return "unknown";
  if (!std::isfinite(*behind)) return "impossible";
  if (*behind < kNothingSeconds) return "as_good";
  return *behind >= candidate.price_seconds ? "never" : "behind";
}

Json contender_json(const ContenderDescription& contender, bool is_chosen) {
  const MeasuredTime time{contender.seconds, contender.low, contender.high};
  return fields_json(contender, {{"is_chosen", is_chosen}, {"time", fields_json(time)}});
}

}  // namespace

Json to_json(const CandidateDescription& candidate) {
  return fields_json(candidate, {{"round_count", candidate.time ? candidate.time->rounds : 0},
                                 {"margin", margin_key(candidate)}});
}

Json to_json(const std::vector<CandidateDescription>& candidates) {
  Json json = Json::array();
  for (const CandidateDescription& candidate : candidates) json.push_back(to_json(candidate));
  return json;
}

Json to_json(const ConversionDescription& conversion) {
  const bool is_measured = conversion.refusal.empty();
  Json json = fields_json(conversion, {{"round_count", is_measured ? conversion.time.rounds : 0}});
  if (!is_measured) json["time"] = nullptr;
  return json;
}

Json to_json(const std::vector<ConversionDescription>& conversions) {
  Json json = Json::array();
  for (const ConversionDescription& conversion : conversions) json.push_back(to_json(conversion));
  return json;
}

Json to_json(const TuningDescription& tuning) {
  Json phases = Json::array();
  for (const auto& [phase, seconds] : tuning.phases) {
    phases.push_back({{"phase", json_key(phase)}, {"phase_us", microseconds_json(seconds)}});
  }
  return fields_json(tuning, {{"phases", std::move(phases)}});
}

Json placement_json(const std::optional<PlacementDescription>& placement,
                    std::optional<double> run_us) {
  const PlacementDescription known = placement.value_or(PlacementDescription{});
  Json contenders = Json::array();
  for (const ContenderDescription& contender : known.contenders) {
    // The winner is the first.
    contenders.push_back(contender_json(contender, contenders.empty()));
  }
  Json json = fields_json(known, {{"contenders", std::move(contenders)}});
  if (!placement) {
    for (const auto& item : json.items()) {
      if (item.key() != "contenders") item.value() = nullptr;
    }
  }
  if (run_us) json["measured_us"] = *run_us;
  return json;
}

}  // namespace tessera::cli
