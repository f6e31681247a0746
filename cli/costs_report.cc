#include "cli/costs_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "cli/placement_report.h"
#include "cli/plan_summary.h"
#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownNodes = 3;
constexpr size_t kShownPlaces = 3;

std::string time_text(double seconds) {
  const double time_us = seconds * 1e6;
  return decimal_text(time_us, time_us < 1000 ? 1 : 0);
}

std::string interval_text(const MeasuredTime& time) {
  if (time.seconds <= 0) return "";
  const double half = (time.high - time.low) / 2 / time.seconds;
  return "\xc2\xb1" + decimal_text(100 * half, half < 0.1 ? 1 : 0) + " %";
}

std::string error_text(double error) {
  if (error == 0) return "0";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", error);
  return text.data();
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Fine:
      return "fine";
    case Verdict::Refused:
      return "refused";
    case Verdict::NotMeasured:
      return "not measured";
    case Verdict::NotBuilt:
      return "not built";
  }
  return "";
}

std::string verdict_text(const CandidateDescription& candidate) {
  const bool is_in = candidate.is_chosen || candidate.verdict == Verdict::Fine;
  return is_in ? margin_text(candidate) : verdict_name(candidate.verdict);
}

bool is_out(const CandidateDescription& candidate) {
  return candidate.verdict == Verdict::Refused || candidate.verdict == Verdict::NotBuilt;
}

struct CandidateGroup {
  std::string op;
  std::vector<std::vector<std::string>> places;  // the nodes of each place where it stands
  std::vector<CandidateDescription> candidates;
};

// What has to agree for two groups to be shown as one.
std::string signature_of(const std::vector<CandidateDescription>& candidates) {
  std::string signature;
  for (const CandidateDescription& candidate : candidates) {
    signature += candidate.op + "|" + candidate.backend + "|" + candidate.algorithm + "|" +
                 std::to_string(candidate.threads) + "|" + std::to_string(candidate.price_seconds) +
                 "|" + verdict_text(candidate) + "|" + candidate.refusal + "|";
    for (const auto* ports : {&candidate.inputs, &candidate.outputs}) {
      for (const PlanPort& port : *ports) signature += port.type + " " + port.layout + ",";
    }
  }
  return signature;
}

std::vector<CandidateGroup> group_candidates(const std::vector<CandidateDescription>& candidates) {
  std::vector<std::vector<CandidateDescription>> by_nodes;
  std::map<std::vector<std::string>, size_t> index_of;
  for (const CandidateDescription& candidate : candidates) {
    const auto [entry, is_new] = index_of.emplace(candidate.nodes, by_nodes.size());
    if (is_new) by_nodes.emplace_back();
    by_nodes[entry->second].push_back(candidate);
  }
  std::vector<CandidateGroup> groups;
  std::map<std::string, size_t> seen;
  for (std::vector<CandidateDescription>& members : by_nodes) {
    std::stable_sort(members.begin(), members.end(), [](const auto& left, const auto& right) {
      const auto rank = [](const CandidateDescription& candidate) {
        return std::pair(is_out(candidate), candidate.price_seconds);
      };
      return rank(left) < rank(right);
    });
    const auto [entry, is_new] = seen.emplace(signature_of(members), groups.size());
    if (is_new) groups.push_back({.op = members[0].op, .candidates = members});
    groups[entry->second].places.push_back(members[0].nodes);
  }
  return groups;
}

std::string title_of(const CandidateGroup& group) {
  std::string text = group.op + ": ";
  for (size_t place = 0; place < std::min(group.places.size(), kShownPlaces); ++place) {
    const std::vector<std::string>& nodes = group.places[place];
    text += place == 0 ? "" : "; ";
    for (size_t node = 0; node < std::min(nodes.size(), kShownNodes); ++node) {
      text += (node == 0 ? "" : ", ") + nodes[node];
    }
    if (nodes.size() > kShownNodes) text += ", ...";
  }
  if (group.places.size() > kShownPlaces) {
    text += "; " + std::to_string(group.places.size()) + " places in all";
  }
  return shorten(printable(text), kTextColumns) + "\n";
}

std::string group_text(const CandidateGroup& group) {
  TextTable table({{"backend"},
                   {"algorithm", Align::Left, true},
                   {"thr", Align::Right},
                   {"layouts", Align::Left, true},
                   {"\xc2\xb5s", Align::Right},
                   {"", Align::Right},
                   {"error", Align::Right},
                   {"build ms", Align::Right},
                   {""}});
  std::string refusals;
  for (const CandidateDescription& candidate : group.candidates) {
    const bool has_time = candidate.time.has_value();
    const bool is_checked =
        candidate.verdict == Verdict::Fine || candidate.verdict == Verdict::Refused;
    table.add_row({candidate.backend, candidate.algorithm, std::to_string(candidate.threads),
                   layouts_text(candidate.inputs, candidate.outputs),
                   has_time ? time_text(candidate.time->seconds) : "",
                   has_time ? interval_text(*candidate.time) : "",
                   is_checked ? error_text(candidate.error) : "",
                   is_checked ? decimal_text(1000 * candidate.build_seconds, 1) : "",
                   verdict_text(candidate)});
    if (candidate.refusal.empty()) continue;
    refusals +=
        wrapped(candidate.backend + " " + candidate.algorithm + ": " + candidate.refusal, "    ");
  }
  return title_of(group) + table.text("  ") + refusals;
}

Json time_json(const MeasuredTime& time) {
  return {
      {"seconds", time.seconds}, {"low", time.low}, {"high", time.high}, {"rounds", time.rounds}};
}

// Infinity, where there is no such choice, is "inf".
Json seconds_json(const std::optional<double>& seconds) {
  if (!seconds) return nullptr;
  return std::isfinite(*seconds) ? Json(*seconds) : Json("inf");
}

Json layouts_json(const std::vector<PlanPort>& ports) {
  Json json = Json::array();
  for (const PlanPort& port : ports) {
    json.push_back({{"value", port.value},
                    {"type", port.type},
                    {"layout", port.layout},
                    {"device", port.device},
                    {"is_constant", port.is_constant},
                    {"pack", port.pack}});
  }
  return json;
}

}  // namespace

std::vector<CandidateDescription> candidates_of(const std::vector<CandidateDescription>& candidates,
                                                const std::vector<std::string>& nodes) {
  std::vector<CandidateDescription> found;
  for (const CandidateDescription& candidate : candidates) {
    const bool covers =
        std::any_of(candidate.nodes.begin(), candidate.nodes.end(), [&](const std::string& node) {
          return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        });
    if (covers) found.push_back(candidate);
  }
  return found;
}

std::string candidates_text(const std::vector<CandidateDescription>& candidates, bool shows_all) {
  std::vector<CandidateDescription> shown;
  for (const CandidateDescription& candidate : candidates) {
    const bool is_known = candidate.verdict != Verdict::NotMeasured || candidate.is_chosen;
    if (shows_all || is_known) shown.push_back(candidate);
  }
  std::string text;
  for (const CandidateGroup& group : group_candidates(shown)) text += "\n" + group_text(group);
  return text;
}

std::string conversions_text(const std::vector<ConversionDescription>& conversions) {
  TextTable table({{"conversion from", Align::Left, true},
                   {"to", Align::Left, true},
                   {"backend"},
                   {"type"},
                   {"bytes", Align::Right},
                   {"\xc2\xb5s", Align::Right},
                   {"", Align::Right},
                   {"refused because", Align::Left, true}});
  for (const ConversionDescription& conversion : conversions) {
    const bool has_time = conversion.refusal.empty();
    table.add_row({conversion.from, conversion.to, conversion.backend, conversion.type,
                   bytes_text(conversion.bytes), has_time ? time_text(conversion.time.seconds) : "",
                   has_time ? interval_text(conversion.time) : "", conversion.refusal});
  }
  return conversions.empty() ? "" : "\n" + table.text();
}

std::string tuning_text(const TuningDescription& tuning) {
  std::string text = "measured " + std::to_string(tuning.measured) +
                     " candidates and conversions in " + decimal_text(tuning.seconds, 1) + " s (" +
                     std::to_string(tuning.known) + " more were known), refused " +
                     std::to_string(tuning.refused);
  if (tuning.reused > 0) {
    text += "; reused " + std::to_string(tuning.reused) + " prices, which saved at least " +
            decimal_text(tuning.reused_seconds, 1) + " s";
  }
  if (tuning.offered > 0) text += ", of " + std::to_string(tuning.offered) + " candidates offered";
  if (tuning.peak_bytes > 0) text += "; took " + bytes_text(tuning.peak_bytes) + " of memory";
  if (tuning.is_out_of_time) text += "; the time for it was spent";
  if (tuning.is_stopped && !tuning.is_out_of_time) text += "; stopped early";
  text = wrapped(text);
  for (const std::string& note : tuning.notes) text += wrapped("note: " + note);
  return text;
}

std::string refused_text(const std::vector<CandidateDescription>& candidates) {
  std::map<std::string, int> counts;
  for (const CandidateDescription& candidate : candidates) {
    if (!is_out(candidate)) continue;
    const std::string name = candidate.backend +
                             (candidate.algorithm.empty() ? "" : ":" + candidate.algorithm) + ", " +
                             candidate.op;
    ++counts[name + ": " + candidate.refusal];
  }
  std::string text;
  for (const auto& [reason, count] : counts) {
    text += wrapped("refused " + reason +
                    (count > 1 ? " (" + std::to_string(count) + " candidates)" : ""));
  }
  return text;
}

Json to_json(const CandidateDescription& candidate) {
  Json json = {{"nodes", candidate.nodes},
               {"op", candidate.op},
               {"backend", candidate.backend},
               {"algorithm", candidate.algorithm},
               {"threads", candidate.threads},
               {"inputs", layouts_json(candidate.inputs)},
               {"outputs", layouts_json(candidate.outputs)},
               {"verdict", verdict_name(candidate.verdict)},
               {"refusal", candidate.refusal},
               {"time", nullptr},
               {"has_cold_weights", candidate.has_cold_weights},
               {"price_seconds", candidate.price_seconds},
               {"error", number_json(candidate.error)},
               {"tolerance", candidate.tolerance},
               {"build_seconds", candidate.build_seconds},
               {"workspace_bytes", candidate.workspace_bytes},
               {"pack_bytes", candidate.pack_bytes},
               {"library_bytes", candidate.library_bytes},
               {"behind_seconds", seconds_json(candidate.behind_seconds)},
               {"ahead_seconds", seconds_json(candidate.ahead_seconds)},
               {"is_chosen", candidate.is_chosen}};
  if (candidate.time) json["time"] = time_json(*candidate.time);
  return json;
}

Json to_json(const ConversionDescription& conversion) {
  return {{"backend", conversion.backend}, {"from", conversion.from},
          {"to", conversion.to},           {"type", conversion.type},
          {"bytes", conversion.bytes},     {"time", time_json(conversion.time)},
          {"refusal", conversion.refusal}};
}

Json to_json(const TuningDescription& tuning) {
  return {{"measured", tuning.measured},
          {"known", tuning.known},
          {"refused", tuning.refused},
          {"reused", tuning.reused},
          {"reused_seconds", tuning.reused_seconds},
          {"offered", tuning.offered},
          {"is_stopped", tuning.is_stopped},
          {"is_out_of_time", tuning.is_out_of_time},
          {"seconds", tuning.seconds},
          {"peak_bytes", tuning.peak_bytes},
          {"phases", tuning.phases},
          {"notes", tuning.notes}};
}

}  // namespace tessera::cli
