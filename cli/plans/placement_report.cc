#include "cli/plans/placement_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/output/element.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/text_table.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownCalls = 8;

// Shorter times cannot be distinguished from 0.
bool is_nothing(double seconds) { return seconds < 5e-8; }

bool is_measured(const CandidateDescription& candidate) {
  return candidate.verdict == Verdict::Fine;
}

bool shares_node(const CandidateDescription& left, const CandidateDescription& right) {
  return std::any_of(left.nodes.begin(), left.nodes.end(), [&](const std::string& node) {
    return std::find(right.nodes.begin(), right.nodes.end(), node) != right.nodes.end();
  });
}

// Among the other candidates that share a node with `chosen`, the one that is closest to being
// chosen.
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

// If the gap rounds to 0.00 %, the plan's price counts as equal to the bound.
bool is_reached(double gap) { return decimal_text(100 * gap, 2) == "0.00"; }

// The measured time of a run, and the predicted times.
std::string times_text(const PlacementDescription& placement, std::optional<double> run_seconds) {
  std::string text = "one run: ";
  if (run_seconds) text += time_text(*run_seconds) + " measured, ";
  text += time_text(placement.predicted_seconds) + " predicted from its steps";
  if (placement.isolated_seconds) {
    text += " (" + time_text(*placement.isolated_seconds) + " from kernels timed alone)";
  }
  if (placement.build_seconds > 0) {
    text += "; building its kernels takes " + time_text(placement.build_seconds);
  }
  return text;
}

// The proof concerns predictions; measured runs may select another plan.
std::string proof_text(const PlacementDescription& placement) {
  const std::string bound = time_text(placement.lower_bound_seconds);
  if (is_reached(placement.gap)) return "no plan has a lower prediction (proven)";
  const std::string above = decimal_text(100 * placement.gap, 2) + " %";
  if (!placement.is_proven_optimal) {
    return "every plan is predicted to take at least " + bound + "; this one is " + above +
           " above that, and the search ended before it could tell whether a better one exists";
  }
  const std::string why =
      placement.contenders.empty()
          ? "this plan was kept, because an earlier tuning chose it or because others gain little"
          : "this plan was chosen by running whole plans";
  const double predicted = placement.lower_bound_seconds * (1 + placement.gap);
  return why +
         "; by the times of steps known now, another is predicted to be the fastest (proven): " +
         bound + ", against " + time_text(predicted) + " predicted for this one";
}

}  // namespace

std::string name_of(const CandidateDescription& candidate) {
  return candidate.backend + (candidate.algorithm.empty() ? "" : ":" + candidate.algorithm);
}

std::string contender_text(const ContenderDescription& contender) {
  const std::string round = ", round " + std::to_string(contender.round);
  const std::string later_round = contender.round > 1 ? round : "";
  switch (contender.kind) {
    case ContenderKind::Chosen:
      return "best by kernels timed alone";
    case ContenderKind::Known:
      return "plan of an earlier tuning";
    case ContenderKind::Solved:
      return "best by timed steps" + round;
    case ContenderKind::Greedy:
      return "fastest kernel of each node" + later_round;
    case ContenderKind::InOrder:
      return "plan without measuring";
    case ContenderKind::Alone:
      return "mostly " + contender.backend + later_round;
    case ContenderKind::Unsplit:
      return "largest groups of " + contender.backend + later_round;
  }
  return contender.name;
}

namespace {

std::string result_text(const PlacementDescription& placement, size_t index) {
  if (index > 0) return "";
  const auto fastest =
      std::ranges::min_element(placement.contenders, {}, &ContenderDescription::seconds);
  const double slower = placement.contenders[0].seconds / fastest->seconds - 1;
  if (slower <= 0) return "used: the fastest";
  // Among plans that are equally fast within noise, the first in the order of selection is used.
  if (slower <= 0.0101) return "used: as fast as any";
  return "used: soonest built and run";
}

std::string contenders_text(const PlacementDescription& placement, const TextStyle& style) {
  if (placement.contenders.empty()) return "";
  TextTable table({{"plan that was run"}, {"one run", Align::Right}, {"result", Align::Left}});
  for (size_t index = 0; index < placement.contenders.size(); ++index) {
    const ContenderDescription& contender = placement.contenders[index];
    table.add_row({contender_text(contender),
                   time_text(contender.seconds, contender.low, contender.high),
                   result_text(placement, index)});
  }
  return "\n" + table.text(style);
}

}  // namespace

std::string placement_text(const std::optional<PlacementDescription>& placement,
                           std::optional<double> run_ms, const TextStyle& style) {
  if (!placement) return "";
  std::optional<double> run_seconds = placement->measured_seconds;
  if (run_ms) run_seconds = *run_ms / 1000;
  return wrapped(times_text(*placement, run_seconds), style) +
         wrapped(proof_text(*placement), style) + contenders_text(*placement, style);
}

std::string margin_text(const CandidateDescription& candidate) {
  if (candidate.is_chosen) {
    const bool leads = candidate.ahead_seconds && *candidate.ahead_seconds > 0;
    if (!leads) return "chosen";
    return std::isfinite(*candidate.ahead_seconds)
               ? "chosen, " + time_text(*candidate.ahead_seconds) + " ahead"
               : "chosen, the only one";
  }
  if (!candidate.behind_seconds || !is_measured(candidate)) return "";
  const double behind = *candidate.behind_seconds;
  if (!std::isfinite(behind)) return "no plan can use it";
  // The plan that is cheapest by predictions uses this candidate or an equally cheap one. The plan
  // in use may be another.
  if (is_nothing(behind)) return "predicted as fast or faster";
  if (behind >= candidate.price_seconds) return "never chosen, even at 0 \xc2\xb5s";
  return "chosen if " + time_text(behind) + " (" +
         decimal_text(100 * behind / candidate.price_seconds, 0) + " %) faster";
}

namespace {

struct CloseCall {
  const CandidateDescription* chosen;
  const CandidateDescription* next;
};

std::string closest_calls_table(const std::vector<CloseCall>& calls, const TextStyle& style) {
  TextTable table({{"node", Align::Left, true},
                   {"used", Align::Left, true},
                   {"other", Align::Left, true},
                   {"its layouts"},
                   {"threads", Align::Right},
                   {"the other is"}});
  for (size_t index = 0; index < std::min(calls.size(), kShownCalls); ++index) {
    const auto& [chosen, next] = calls[index];
    table.add_row(
        {nodes_text(chosen->nodes, style), op_text(chosen->op, style) + " " + name_of(*chosen),
         op_text(next->op, style) + " " + name_of(*next), layouts_text(next->inputs, next->outputs),
         std::to_string(next->threads), margin_text(*next)});
  }
  return table.text(style);
}

}  // namespace

std::string closest_calls_text(const PlanDescription& plan, double margin_seconds,
                               const TextStyle& style) {
  std::vector<CloseCall> calls;
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
  std::stable_sort(calls.begin(), calls.end(), [](const CloseCall& left, const CloseCall& right) {
    return *left.next->behind_seconds < *right.next->behind_seconds;
  });
  std::string text = calls.empty() ? "" : "\nclosest choices\n" + closest_calls_table(calls, style);
  if (missing > 0) {
    text +=
        wrapped(std::to_string(missing) + " of " + count_text(missing + found, "margin") +
                    " not computed in " + number_text(margin_seconds, 6) + " s; raise --margins",
                style);
  }
  return text;
}

}  // namespace tessera::cli
