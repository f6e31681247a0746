#include "choose/choice.h"

#include <algorithm>
#include <utility>

#include "base/containers/at.h"
#include "base/threads/stopwatch.h"
#include "choose/select_offers.h"
#include "place/explain_violation.h"

namespace tessera {
namespace {

// The sum of `values`, by candidate, over `placement`.
double sum_of(const std::vector<double>& values, const Placement& placement) {
  double sum = 0;
  for (const int index : placement.chosen) sum += values[at(index)];
  return sum;
}

// The time of a run for moving data and starting kernels, without the time for computing.
double seconds_of_passes(const PlacementProblem& problem, const Placement& placement,
                         const ChooseTuning& tuning) {
  double seconds = 0;
  for (const int index : placement.chosen) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    if (candidate.sharing != PlacementCandidate::Sharing::None) continue;
    seconds += tuning.pass_seconds_per_step;
    for (const auto* ports : {&candidate.inputs, &candidate.outputs}) {
      for (const PlacementPort& port : *ports) {
        seconds += tuning.pass_seconds_per_byte * static_cast<double>(port.bytes);
      }
    }
  }
  return seconds;
}

Choice choose_without_prices(const ChoiceTask& task, std::optional<ChoiceSolution> solution) {
  try {
    return {.placement = choose_in_order(task.placement_problem(), task.problem().node_locations),
            .solution = std::move(solution)};
  } catch (const Uncovered&) {
    // Groups that were accepted early left a node uncovered. Another choice may cover it.
    if (!solution) solution = solve(task);
    if (solution->found.placement.chosen.empty()) throw;
    return {.placement = solution->found.placement, .solution = std::move(solution)};
  }
}

Placement greedy(const ChoiceTask& task, const Placement& known) {
  try {
    return choose_by_price(task.placement_problem(), known, task.problem().node_locations);
  } catch (const Uncovered&) {
    // Groups that were accepted early left a node uncovered.
    return known;
  }
}

// The placement of choose() with prices, if no preferred placement is usable.
Placement cheapest_known(const ChoiceTask& task, const Placement& solved) {
  const Placement known = in_order(task);
  Placement best = greedy(task, known);
  if (best.chosen.empty()) best = solved;
  // Throws Uncovered, which names the node.
  if (best.chosen.empty())
    best = choose_in_order(task.placement_problem(), task.problem().node_locations);
  double seconds = price(task, best);
  if (!solved.chosen.empty() && price(task, solved) < seconds) {
    best = solved;
    seconds = price(task, best);
  }
  const double min_gain_ratio = task.problem().rules.tuning.min_gain_ratio;
  const bool is_worth_it = known.chosen.empty() || seconds < min_gain_ratio * price(task, known);
  return is_worth_it ? best : known;
}

// The problem of single_backend(); nullopt if the backend has no candidate.
std::optional<PlacementProblem> problem_of_backend(const ChoiceTask& task, int preference) {
  PlacementProblem problem = task.placement_problem();
  std::vector<bool> has_own(problem.nodes.size(), false);
  bool has_any = false;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (problem.is_forbidden[index] || candidate.preference != preference) continue;
    has_any = true;
    for (const int node : candidate.nodes) has_own[at(node)] = true;
  }
  if (!has_any) return std::nullopt;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (candidate.preference == preference) continue;
    // Views run nothing, so those of every backend are allowed.
    if (candidate.sharing != PlacementCandidate::Sharing::None) continue;
    const bool takes_over =
        std::ranges::any_of(candidate.nodes, [&](int node) -> bool { return has_own[at(node)]; });
    if (takes_over) problem.is_forbidden[index] = true;
  }
  return problem;
}

}  // namespace

Choice choose(const ChoiceTask& task, const Placement& preferred,
              std::optional<ChoiceSolution> solution) {
  if (!task.prices()) return choose_without_prices(task, std::move(solution));
  if (!solution) solution = solve(task);
  Placement placement =
      is_usable(task, preferred) ? preferred : cheapest_known(task, solution->found.placement);
  return {.placement = std::move(placement), .solution = std::move(solution)};
}

Choice choose_covering(const ChoiceTask& task, const Offers& offers, const Graph& graph,
                       const Placement& preferred, std::optional<ChoiceSolution> solution) {
  check_is_covered(offers, graph, task.forbidden());
  try {
    return choose(task, preferred, std::move(solution));
  } catch (const Uncovered& uncovered) {
    throw explain_uncovered(offers, graph, {uncovered.node()}, task.forbidden());
  }
}

bool is_usable(const ChoiceTask& task, const Placement& placement) {
  if (placement.chosen.empty()) return false;
  const std::vector<bool>& is_forbidden = task.placement_problem().is_forbidden;
  const bool is_allowed = std::ranges::none_of(
      placement.chosen, [&](int index) -> bool { return is_forbidden[at(index)]; });
  return is_allowed && explain_violation(task.placement_problem(), placement).empty();
}

Placement in_order(const ChoiceTask& task) {
  const ChoiceProblem& offered = task.problem();
  PlacementProblem problem = task.placement_problem();
  problem.conversion_prices.clear();
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    problem.candidates[index].seconds = offered.placement_problem.candidates[index].seconds;
    if (offered.is_single_threaded[index] || offered.is_measured_only[index]) {
      problem.is_forbidden[index] = true;
    }
    if (!offered.rules.may_compile && offered.compile_seconds[index] > 0) {
      problem.is_forbidden[index] = true;
    }
  }
  try {
    return choose_in_order(problem, offered.node_locations);
  } catch (const Uncovered&) {
    return {};
  }
}

ChoiceSolution solve(const ChoiceTask& task) {
  const Stopwatch stopwatch;
  const double max_seconds = task.problem().rules.max_solve_seconds;
  PlacementEffort effort;
  if (max_seconds > 0) {
    effort.network.should_continue = [&] { return stopwatch.read().seconds < max_seconds; };
  }
  ChoiceSolution solution{.found = solve_placement(task.placement_problem(), effort)};
  solution.seconds = stopwatch.read().seconds;
  return solution;
}

Placement solved_or_greedy(const ChoiceTask& task, const ChoiceSolution& solution) {
  const Placement& solved = solution.found.placement;
  return solved.chosen.empty() ? greedy(task) : solved;
}

Choice solve_or_greedy(const ChoiceTask& task) {
  ChoiceSolution solution = solve(task);
  Placement placement = solved_or_greedy(task, solution);
  return {.placement = std::move(placement), .solution = std::move(solution)};
}

Placement greedy(const ChoiceTask& task) { return greedy(task, Placement{}); }

Placement single_backend(const ChoiceTask& task, int preference) {
  const std::optional<PlacementProblem> problem = problem_of_backend(task, preference);
  return problem ? solve_placement(*problem).placement : Placement{};
}

Placement unsplit(const ChoiceTask& task, int preference) {
  std::optional<PlacementProblem> problem = problem_of_backend(task, preference);
  if (!problem) return {};
  for (PlacementCandidate& candidate : problem->candidates) candidate.is_one_pass = false;
  try {
    return choose_in_order(*problem, task.problem().node_locations);
  } catch (const Uncovered&) {
    return {};
  }
}

double price(const ChoiceTask& task, const Placement& placement) {
  return predicted_seconds(task.placement_problem(), placement);
}

double amortized_build_seconds(const ChoiceTask& task, const Placement& placement) {
  return task.prices() ? sum_of(task.prices()->amortized_build_seconds, placement) : 0;
}

double build_seconds(const ChoiceTask& task, const Placement& placement) {
  return task.prices() ? sum_of(task.prices()->build_seconds, placement) : 0;
}

std::optional<CompilationGain> compilation_gain(const ChoiceTask& task, const Placement& chosen) {
  const ChoiceProblem& problem = task.problem();
  const auto is_to_compile = [](double seconds) { return seconds > 0; };
  if (task.prices() || problem.rules.may_compile ||
      std::ranges::none_of(problem.compile_seconds, is_to_compile)) {
    return std::nullopt;
  }
  ChoiceProblem compiling = problem;
  compiling.rules.may_compile = true;
  const Placement compiled = in_order(ChoiceTask(compiling, std::nullopt, task.constraints()));
  const auto seconds_of = [&](const Placement& placement) {
    return seconds_of_passes(task.placement_problem(), placement, problem.rules.tuning);
  };
  CompilationGain gain{.seconds_per_run = seconds_of(chosen) - seconds_of(compiled),
                       .compile_seconds = sum_of(problem.compile_seconds, compiled)};
  const bool is_gain = gain.compile_seconds > 0 && gain.seconds_per_run > 0;
  return is_gain ? std::optional(gain) : std::nullopt;
}

PlacementDescription describe(const ChoiceTask& task, const Choice& choice) {
  const double total = price(task, choice.placement);
  PlacementDescription description{
      .predicted_seconds = total - amortized_build_seconds(task, choice.placement),
      .build_seconds = build_seconds(task, choice.placement)};
  if (!choice.solution) return description;
  const PlacementSolution& found = choice.solution->found;
  description.lower_bound_seconds = found.lower_bound;
  description.is_proven_optimal = found.is_found() && found.is_proven();
  description.solve_seconds = choice.solution->seconds;
  if (found.lower_bound > 0) {
    // Sums in another order differ by rounding, so the gap could be negative.
    description.gap = std::max(0.0, total / found.lower_bound - 1);
  }
  return description;
}

std::vector<CandidateMargin> margins(const ChoiceTask& task,
                                     const std::optional<ChoiceSolution>& solution,
                                     double search_seconds) {
  const bool is_proven = solution && solution->found.is_found() && solution->found.is_proven();
  if (search_seconds <= 0 || !is_proven) return {};
  const Stopwatch stopwatch;
  return find_margins(task.placement_problem(), solution->found,
                      {.network = {.work_cells = task.problem().rules.tuning.margin_cells}},
                      [&] { return stopwatch.read().seconds < search_seconds; });
}

}  // namespace tessera
