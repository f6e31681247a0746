#include "cli/placement_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/plan_summary.h"
#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownCalls = 8;

std::string ms_text(double milliseconds) {
  return decimal_text(milliseconds, milliseconds < 10 ? 3 : 2);
}

std::string us_text(double seconds) {
  const double time_us = seconds * 1e6;
  return decimal_text(time_us, time_us < 1000 ? 1 : 0);
}

// Below that a time cannot be told from none.
bool is_nothing(double seconds) { return seconds < 5e-8; }

bool is_measured(const CandidateDescription& candidate) {
  return candidate.verdict == Verdict::Fine;
}

std::string name_of(const CandidateDescription& candidate) {
  return candidate.backend + (candidate.algorithm.empty() ? "" : ":" + candidate.algorithm);
}

std::string nodes_text(const CandidateDescription& candidate) {
  return candidate.nodes.size() == 1
             ? candidate.nodes[0]
             : candidate.nodes[0] + " +" + std::to_string(candidate.nodes.size() - 1);
}

bool shares_node(const CandidateDescription& left, const CandidateDescription& right) {
  return std::any_of(left.nodes.begin(), left.nodes.end(), [&](const std::string& node) {
    return std::find(right.nodes.begin(), right.nodes.end(), node) != right.nodes.end();
  });
}

// Of the candidates that would do some of the same nodes, the one that lacks least.
const CandidateDescription* runner_up(const PlanDescription& plan,
                                      const CandidateDescription& chosen) {
  const CandidateDescription* best = nullptr;
  for (const CandidateDescription& other : plan.candidates) {
    const bool counts = !other.is_chosen && other.behind_seconds && is_measured(other) &&
                        std::isfinite(*other.behind_seconds);
    if (!counts || !shares_node(chosen, other)) continue;
    if (best == nullptr || *other.behind_seconds < *best->behind_seconds) best = &other;
  }
  return best;
}

// Where little is to be won the choice that needs no prices stands.
std::string gap_text(double gap) {
  const std::string percent = decimal_text(100 * gap, 2);
  return percent == "0.00" ? ", and reached" : "; the choice takes " + percent + " % more";
}

Json milliseconds_json(std::optional<double> seconds) {
  return seconds ? Json(1000 * *seconds) : Json(nullptr);
}

}  // namespace

std::string placement_text(const std::optional<PlacementDescription>& placement,
                           std::optional<double> run_ms) {
  if (!placement) return "";
  std::string text = "placement: predicted " + ms_text(1000 * placement->predicted_seconds) + " ms";
  if (placement->isolated_seconds) {
    text += " (" + ms_text(1000 * *placement->isolated_seconds) + " ms by kernels run alone)";
  }
  if (!run_ms && placement->measured_seconds) run_ms = 1000 * *placement->measured_seconds;
  if (run_ms) text += ", measured " + ms_text(*run_ms) + " ms";
  if (placement->build_seconds > 0) {
    text += "; its kernels take " + ms_text(1000 * placement->build_seconds) + " ms to build";
  }
  text += "; nothing takes less than " + ms_text(1000 * placement->lower_bound_seconds) + " ms (" +
          (placement->is_proven_optimal ? "proven" : "the search ended before it had a proof") +
          gap_text(placement->gap) + "); solved in " + ms_text(1000 * placement->solve_seconds) +
          " ms";
  std::string lines = wrapped(text);
  std::string contenders;
  for (const ContenderDescription& contender : placement->contenders) {
    contenders += (contenders.empty() ? "run-off: " : ", ") + contender.name + " " +
                  ms_text(1000 * contender.seconds) + " ms";
  }
  return contenders.empty() ? lines : lines + wrapped(contenders);
}

Json placement_json(const std::optional<PlacementDescription>& placement,
                    std::optional<double> run_ms) {
  Json json = {{"predicted_ms", nullptr}, {"isolated_ms", nullptr},    {"measured_ms", nullptr},
               {"build_ms", nullptr},     {"lower_bound_ms", nullptr}, {"proven_optimal", nullptr},
               {"gap", nullptr},          {"solve_ms", nullptr},       {"contenders", nullptr}};
  if (placement) {
    json["predicted_ms"] = 1000 * placement->predicted_seconds;
    json["isolated_ms"] = milliseconds_json(placement->isolated_seconds);
    json["measured_ms"] = milliseconds_json(placement->measured_seconds);
    json["build_ms"] = 1000 * placement->build_seconds;
    json["lower_bound_ms"] = 1000 * placement->lower_bound_seconds;
    json["proven_optimal"] = placement->is_proven_optimal;
    json["gap"] = placement->gap;
    json["solve_ms"] = 1000 * placement->solve_seconds;
    if (!placement->contenders.empty()) json["contenders"] = Json::object();
    for (const ContenderDescription& contender : placement->contenders) {
      json["contenders"][contender.name] = 1000 * contender.seconds;
    }
  }
  if (run_ms) json["measured_ms"] = *run_ms;
  return json;
}

std::string margin_text(const CandidateDescription& candidate) {
  if (candidate.is_chosen) {
    const bool leads = candidate.ahead_seconds && *candidate.ahead_seconds > 0;
    if (!leads) return "chosen";
    return std::isfinite(*candidate.ahead_seconds)
               ? "chosen, " + us_text(*candidate.ahead_seconds) + " \xc2\xb5s ahead"
               : "chosen, the only one";
  }
  if (!candidate.behind_seconds || !is_measured(candidate)) return "";
  const double behind = *candidate.behind_seconds;
  if (!std::isfinite(behind)) return "fits nowhere";
  if (is_nothing(behind)) return "as good";
  if (behind >= candidate.price_seconds) return "not even for nothing";
  return "wins if " + us_text(behind) + " \xc2\xb5s (" +
         decimal_text(100 * behind / candidate.price_seconds, 0) + " %) faster";
}

std::string closest_calls_text(const PlanDescription& plan) {
  struct Call {
    const CandidateDescription* chosen;
    const CandidateDescription* next;
  };
  std::vector<Call> calls;
  int64_t missing = 0;
  int64_t found = 0;
  for (const CandidateDescription& candidate : plan.candidates) {
    if (!is_measured(candidate)) continue;
    ++(candidate.behind_seconds ? found : missing);
    if (!candidate.is_chosen) continue;
    if (const CandidateDescription* next = runner_up(plan, candidate)) {
      calls.push_back({&candidate, next});
    }
  }
  if (found == 0) return "";
  std::stable_sort(calls.begin(), calls.end(), [](const Call& left, const Call& right) {
    return *left.next->behind_seconds < *right.next->behind_seconds;
  });
  TextTable table({{"closest calls at", Align::Left, true},
                   {"chosen", Align::Left, true},
                   {"next", Align::Left, true},
                   {"layouts", Align::Left, true},
                   {"thr", Align::Right},
                   {"which"}});
  for (size_t index = 0; index < std::min(calls.size(), kShownCalls); ++index) {
    const auto& [chosen, next] = calls[index];
    table.add_row({nodes_text(*chosen), name_of(*chosen), name_of(*next),
                   layouts_text(next->inputs, next->outputs), std::to_string(next->threads),
                   margin_text(*next)});
  }
  std::string text = calls.empty() ? "" : "\n" + table.text();
  if (missing > 0) {
    text += wrapped("what " + std::to_string(missing) + " of " + std::to_string(missing + found) +
                    " measured candidates lack was not found out in time (--margins SECONDS)");
  }
  return text;
}

}  // namespace tessera::cli
