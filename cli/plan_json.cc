#include "cli/plan_json.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "cli/plan_summary.h"

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

// The 95 % interval: in another process, the time lies in it 19 times out of 20.
Json interval_json(double seconds, double low, double high) {
  return {{"time_us", microseconds_json(seconds)},
          {"low_us", microseconds_json(low)},
          {"high_us", microseconds_json(high)}};
}

Json time_json(const MeasuredTime& time) {
  return interval_json(time.seconds, time.low, time.high);
}

// Splits "solved, round 2" and "mylib alone" into their parts.
Json contender_json(const ContenderDescription& contender) {
  constexpr std::string_view kRound = ", round ";
  constexpr std::string_view kAlone = " alone";
  std::string choice = contender.name;
  std::string backend;
  int round = 1;
  if (const size_t at = choice.find(kRound); at != std::string::npos) {
    round = std::atoi(choice.c_str() + at + kRound.size());
    choice.resize(at);
  }
  if (choice.ends_with(kAlone)) {
    backend = choice.substr(0, choice.size() - kAlone.size());
    choice = "alone";
  }
  return {{"contender", json_key(choice)},
          {"backend", backend},
          {"round", round},
          {"is_chosen", false},
          {"time", interval_json(contender.seconds, contender.low, contender.high)}};
}

}  // namespace

Json ports_json(const std::vector<PlanPort>& ports) {
  Json json = Json::array();
  for (const PlanPort& port : ports) {
    json.push_back({{"value", port.value},
                    {"tensor", port.type},
                    {"layout", port.layout},
                    {"device", port.device},
                    {"is_constant", port.is_constant},
                    {"pack", port.pack},
                    {"capacity_count", optional_json(port.capacity)},
                    {"density", optional_json(port.density)}});
  }
  return json;
}

Json to_json(const CandidateDescription& candidate) {
  return {{"nodes", candidate.nodes},
          {"op", candidate.op},
          {"backend", candidate.backend},
          {"algorithm", candidate.algorithm},
          {"thread_count", candidate.threads},
          {"inputs", ports_json(candidate.inputs)},
          {"outputs", ports_json(candidate.outputs)},
          {"is_chosen", candidate.is_chosen},
          {"verdict", json_key(verdict_name(candidate.verdict))},
          {"reason", candidate.refusal},
          {"time", candidate.time ? time_json(*candidate.time) : Json(nullptr)},
          {"round_count", candidate.time ? candidate.time->rounds : 0},
          {"has_cold_weights", candidate.has_cold_weights},
          {"price_us", microseconds_json(candidate.price_seconds)},
          {"margin", margin_key(candidate)},
          {"behind_us", microseconds_json(candidate.behind_seconds)},
          {"ahead_us", microseconds_json(candidate.ahead_seconds)},
          {"relative_error", number_json(candidate.error)},
          {"tolerance", number_json(candidate.tolerance)},
          {"build_us", microseconds_json(candidate.build_seconds)},
          {"workspace_bytes", candidate.workspace_bytes},
          {"pack_bytes", candidate.pack_bytes},
          {"library_bytes", candidate.library_bytes}};
}

Json to_json(const ConversionDescription& conversion) {
  const bool is_measured = conversion.refusal.empty();
  return {{"backend", conversion.backend},
          {"from_layout", conversion.from},
          {"to_layout", conversion.to},
          {"type", conversion.type},
          {"size_bytes", conversion.bytes},
          {"time", is_measured ? time_json(conversion.time) : Json(nullptr)},
          {"round_count", is_measured ? conversion.time.rounds : 0},
          {"reason", conversion.refusal}};
}

Json to_json(const TuningDescription& tuning) {
  Json json = {{"measured_count", tuning.measured},
               {"known_count", tuning.known},
               {"refused_count", tuning.refused},
               {"reused_count", tuning.reused},
               {"reused_us", microseconds_json(tuning.reused_seconds)},
               {"offered_count", tuning.offered},
               {"is_stopped", tuning.is_stopped},
               {"is_out_of_time", tuning.is_out_of_time},
               {"tuning_us", microseconds_json(tuning.seconds)},
               {"peak_resident_bytes", tuning.peak_bytes},
               {"phases", Json::array()},
               {"notes", tuning.notes}};
  for (const auto& [phase, seconds] : tuning.phases) {
    json["phases"].push_back(
        {{"phase", json_key(phase)}, {"phase_us", microseconds_json(seconds)}});
  }
  return json;
}

Json placement_json(const std::optional<PlacementDescription>& placement,
                    std::optional<double> run_us) {
  Json json = {
      {"predicted_us", nullptr},      {"isolated_us", nullptr}, {"lower_bound_us", nullptr},
      {"is_proven_optimal", nullptr}, {"gap", nullptr},         {"solve_us", nullptr},
      {"build_us", nullptr},          {"measured_us", nullptr}, {"contenders", Json::array()}};
  if (placement) {
    json["predicted_us"] = microseconds_json(placement->predicted_seconds);
    json["isolated_us"] = microseconds_json(placement->isolated_seconds);
    json["lower_bound_us"] = microseconds_json(placement->lower_bound_seconds);
    json["is_proven_optimal"] = placement->is_proven_optimal;
    json["gap"] = number_json(placement->gap);
    json["solve_us"] = microseconds_json(placement->solve_seconds);
    json["build_us"] = microseconds_json(placement->build_seconds);
    json["measured_us"] = microseconds_json(placement->measured_seconds);
    for (const ContenderDescription& contender : placement->contenders) {
      json["contenders"].push_back(contender_json(contender));
    }
    // The winner is the first.
    if (!json["contenders"].empty()) json["contenders"][0]["is_chosen"] = true;
  }
  if (run_us) json["measured_us"] = *run_us;
  return json;
}

}  // namespace tessera::cli
