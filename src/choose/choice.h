// Chooses among offers: in order, or by price. All functions are pure, apart from a limit on the
// time of a solution.
#pragma once

#include <optional>
#include <vector>

#include "backend/candidates.h"
#include "choose/choice_problem.h"
#include "graph/graph.h"
#include "place/margins.h"
#include "place/placement.h"
#include "place/solve_placement.h"
#include "tessera/tessera.h"

namespace tessera {

// The cheapest placement of a task by price. Solving takes long, so callers keep the solution as
// long as they need that of the same task.
struct ChoiceSolution {
  PlacementSolution found;  // its placement is empty if there is none, or none was found
  double seconds = 0;       // that solving took
};

struct Choice {
  Placement placement;
  std::optional<ChoiceSolution> solution = {};  // of the task; nullopt if it was not solved
};

// Chooses. Without prices: in order, or if that leaves a node uncovered, the cheapest placement by
// the estimates of the plug-ins. With prices: `preferred`, a placement that is known to be the
// fastest, if it is usable. Otherwise the cheapest known placement, unless its gain over in_order()
// is within the error of measured prices of a whole model: then in_order(). With prices, the result
// always has a solution. `preferred` may be empty. `solution` is that of `task`, if it is known.
// Throws Uncovered for a node that no candidate computes, or none that is compatible with the other
// choices.
Choice choose(const ChoiceTask& task, const Placement& preferred = {},
              std::optional<ChoiceSolution> solution = {});
// Calls choose(). Throws Unsupported if no choice computes every node of `graph`; the message lists
// what each backend offered for the uncovered node, and what it refused.
Choice choose_covering(const ChoiceTask& task, const Offers& offers, const Graph& graph,
                       const Placement& preferred = {},
                       std::optional<ChoiceSolution> solution = {});

// Whether `placement` is a legal placement of candidates that are not forbidden.
bool is_usable(const ChoiceTask& task, const Placement& placement);

// The placement that choose() returns without prices: the prices of `task` only forbid what was
// refused. Empty if some node has only candidates that need prices to be chosen.
Placement in_order(const ChoiceTask& task);
ChoiceSolution solve(const ChoiceTask& task);
// The placement of `solution`, or greedy() if the solver found no placement that can run within its
// effort.
Placement solved_or_greedy(const ChoiceTask& task, const ChoiceSolution& solution);
// solved_or_greedy() with the solution.
Choice solve_or_greedy(const ChoiceTask& task);
// A cheap placement, found with a greedy cover and a local search. Empty if that leaves a node
// uncovered.
Placement greedy(const ChoiceTask& task);
// Returns the cheapest placement with the candidates of one backend, given by its preference. Nodes
// for which it has none use any other backend. Views of all backends may be used. Returns an empty
// placement if the backend has no candidate, or there is no such placement.
Placement single_backend(const ChoiceTask& task, int preference);
// Like single_backend(), but chooses the largest groups that the backend offers, not the cheapest
// ones.
Placement unsplit(const ChoiceTask& task, int preference);

// Returns the time of a run plus the amortized build time. Which candidates are forbidden counts,
// too, because the others decide which copies views force.
double price(const ChoiceTask& task, const Placement& placement);
// Returns the amortized build time alone; 0 without prices.
double amortized_build_seconds(const ChoiceTask& task, const Placement& placement);
// Returns the time to build the kernels of `placement`, see PricedOffers::build_seconds(); 0
// without prices.
double build_seconds(const ChoiceTask& task, const Placement& placement);

// The time that compiling kernels behind the runs could save, estimated without measurements.
struct CompilationGain {
  double seconds_per_run = 0;
  double compile_seconds = 0;
};
// Returns the gain of the choice without prices over `chosen` if kernels were compiled for it.
// Returns nullopt if there is no gain, if kernels may be compiled anyway, or with prices.
std::optional<CompilationGain> compilation_gain(const ChoiceTask& task, const Placement& chosen);

// The predicted time of `choice` and its gap to the lower bound of its solution.
PlacementDescription describe(const ChoiceTask& task, const Choice& choice);
// The margins by candidate, as far as they are found within `search_seconds`. Empty if that is 0,
// or if there is no solution that is proven optimal.
std::vector<CandidateMargin> margins(const ChoiceTask& task,
                                     const std::optional<ChoiceSolution>& solution,
                                     double search_seconds);

}  // namespace tessera
