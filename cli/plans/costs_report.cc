#include "cli/plans/costs_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "api/describe/description_fields.h"
#include "cli/output/quantities.h"
#include "cli/output/text_table.h"
#include "cli/plans/placement_report.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownNodes = 3;
constexpr size_t kShownOccurrences = 3;

std::string verdict_text(const CandidateDescription& candidate) {
  const bool is_in = candidate.is_chosen || candidate.verdict == Verdict::Fine;
  return is_in ? margin_text(candidate) : std::string(name(candidate.verdict));
}

bool is_out(const CandidateDescription& candidate) {
  return candidate.verdict == Verdict::Refused || candidate.verdict == Verdict::NotBuilt;
}

struct CandidateGroup {
  std::string op;
  std::vector<std::vector<std::string>> occurrences;  // the nodes of each occurrence of the group
  std::vector<CandidateDescription> candidates;
};

// Two groups are shown as one if their signatures are equal.
std::string signature_of(const std::vector<CandidateDescription>& candidates) {
  std::string signature;
  for (const CandidateDescription& candidate : candidates) {
    signature += candidate.op + "|" + candidate.backend + "|" + candidate.algorithm + "|" +
                 std::to_string(candidate.threads) + "|" + time_text(candidate.price_seconds) +
                 "|" + (candidate.time ? time_text(*candidate.time) : "") + "|" +
                 verdict_text(candidate) + "|" + candidate.refusal + "|";
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
    groups[entry->second].occurrences.push_back(members[0].nodes);
  }
  return groups;
}

bool has_chosen(const std::vector<CandidateDescription>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const CandidateDescription& candidate) { return candidate.is_chosen; });
}

// If the plan runs other groups of the same nodes, no candidate of this group is marked "chosen",
// so the title says that the group is not in the plan.
std::string title_of(const CandidateGroup& group, bool has_plan, const TextStyle& style) {
  const bool is_passed_over = has_plan && !has_chosen(group.candidates);
  std::string text = op_text(group.op, style) + (is_passed_over ? " (not in the plan): " : ": ");
  for (size_t index = 0; index < std::min(group.occurrences.size(), kShownOccurrences); ++index) {
    const std::vector<std::string>& nodes = group.occurrences[index];
    text += index == 0 ? "" : "; ";
    for (size_t node = 0; node < std::min(nodes.size(), kShownNodes); ++node) {
      text += (node == 0 ? "" : ", ") + nodes[node];
    }
    if (nodes.size() > kShownNodes) text += ", ...";
  }
  if (group.occurrences.size() > kShownOccurrences) {
    text += "; " + std::to_string(group.occurrences.size()) + " occurrences in all";
  }
  return fitted(text, style) + "\n";
}

std::string group_text(const CandidateGroup& group, bool has_plan, const TextStyle& style) {
  TextTable table({{"backend"},
                   {"algorithm", Align::Left, true},
                   {"threads", Align::Right},
                   {"layouts", Align::Left, true},
                   {"measured", Align::Right},
                   {"predicted", Align::Right},
                   {"to build", Align::Right},
                   {"result"}});
  std::string refusals;
  for (const CandidateDescription& candidate : group.candidates) {
    const bool is_checked =
        candidate.verdict == Verdict::Fine || candidate.verdict == Verdict::Refused;
    table.add_row({candidate.backend, candidate.algorithm, std::to_string(candidate.threads),
                   layouts_text(candidate.inputs, candidate.outputs),
                   candidate.time ? time_text(*candidate.time) : "",
                   is_out(candidate) ? "" : time_text(candidate.price_seconds),
                   is_checked ? time_text(candidate.build_seconds) : "", verdict_text(candidate)});
    if (candidate.refusal.empty()) continue;
    refusals += wrapped(name_of(candidate) + " is refused: " + candidate.refusal, style, "    ");
  }
  return title_of(group, has_plan, style) + table.text(style, "  ") + refusals;
}

}  // namespace

std::vector<CandidateDescription> candidates_of(const std::vector<CandidateDescription>& candidates,
                                                const std::vector<std::string>& nodes) {
  const std::set<std::string> wanted(nodes.begin(), nodes.end());
  std::vector<CandidateDescription> found;
  for (const CandidateDescription& candidate : candidates) {
    const bool covers = std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                                    [&](const std::string& node) { return wanted.contains(node); });
    if (covers) found.push_back(candidate);
  }
  return found;
}

std::string candidates_text(const std::vector<CandidateDescription>& candidates, bool shows_all,
                            const TextStyle& style) {
  std::vector<CandidateDescription> shown;
  for (const CandidateDescription& candidate : candidates) {
    const bool is_known = candidate.verdict != Verdict::NotMeasured || candidate.is_chosen;
    if (shows_all || is_known) shown.push_back(candidate);
  }
  if (shown.empty()) return "";
  std::string text =
      "\n" + wrapped(
                 "measured: alone, or as a step of a whole plan; predicted: the expected time as a "
                 "step of a plan, the shortest first",
                 style);
  const bool has_plan = has_chosen(shown);
  for (const CandidateGroup& group : group_candidates(shown)) {
    text += "\n" + group_text(group, has_plan, style);
  }
  return text;
}

std::string conversions_text(const std::vector<ConversionDescription>& conversions,
                             const TextStyle& style) {
  const bool has_refused =
      std::any_of(conversions.begin(), conversions.end(),
                  [](const ConversionDescription& one) { return !one.refusal.empty(); });
  std::vector<Column> columns = {{"conversion from", Align::Left, true},
                                 {"to", Align::Left, true},
                                 {"backend"},
                                 {"type"},
                                 {"size", Align::Right},
                                 {"measured", Align::Right}};
  if (has_refused) columns.push_back({"refused because", Align::Left, true});
  TextTable table(std::move(columns));
  for (const ConversionDescription& conversion : conversions) {
    const bool has_time = conversion.refusal.empty();
    std::vector<std::string> cells = {conversion.from,
                                      conversion.to,
                                      conversion.backend,
                                      conversion.type,
                                      bytes_text(conversion.bytes),
                                      has_time ? time_text(conversion.time) : ""};
    if (has_refused) cells.push_back(conversion.refusal);
    table.add_row(cells);
  }
  return conversions.empty() ? "" : "\n" + table.text(style);
}

std::string tuning_text(const TuningDescription& tuning, const TextStyle& style) {
  std::string text =
      "measured " + count_text(tuning.measured, "kernel or conversion", "kernels and conversions");
  if (tuning.refused > 0) text += ", of which " + std::to_string(tuning.refused) + " refused";
  if (tuning.refused == 0 && tuning.measured > 0) text += ", all with right results";
  text += "; " + std::to_string(tuning.known) + " more were known";
  if (tuning.reused > 0) {
    text += "; " + count_text(tuning.reused, "known time") + " saved at least " +
            time_text(tuning.reused_seconds);
  }
  if (tuning.offered > 0) {
    text += "; backends offered " + count_text(tuning.offered, "candidate");
    const bool has_others = tuning.measured + tuning.known > 0 && tuning.measured < tuning.offered;
    if (has_others && !tuning.is_stopped) text += ", of which the others could not win";
  }
  text += "; it took " + time_text(tuning.seconds);
  if (tuning.peak_bytes > 0) text += " and " + bytes_text(tuning.peak_bytes) + " of memory";
  if (tuning.is_out_of_time) text += "; the time budget was used up";
  if (tuning.is_stopped && !tuning.is_out_of_time) text += "; stopped early";
  text = wrapped(text, style);
  for (const std::string& note : tuning.notes) text += wrapped("note: " + note, style);
  return text;
}

std::string refused_text(const std::vector<CandidateDescription>& candidates,
                         const TextStyle& style) {
  std::map<std::string, int> counts;
  for (const CandidateDescription& candidate : candidates) {
    if (is_out(candidate)) {
      ++counts[name_of(candidate) + " for " + candidate.op + ": " + candidate.refusal];
    }
  }
  std::string text;
  for (const auto& [reason, count] : counts) {
    const std::string times = count > 1 ? " (" + count_text(count, "candidate") + ")" : "";
    text += wrapped("refused " + reason + times, style);
  }
  return text;
}

}  // namespace tessera::cli
