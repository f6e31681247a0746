// The choice among offers as an object that is changed: how Tessera chose until November 2026.
// Shares no code with src/choose/choice.h, apart from src/place, and is compared with it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/choice.h"
#include "choose/choice_problem.h"
#include "graph/graph.h"
#include "place/margins.h"
#include "place/placement.h"
#include "place/solve_placement.h"
#include "tessera/tessera.h"

namespace tessera {

// Holds the problem, the candidates that are forbidden in it, and its newest solution. What
// set_prices(), forbid(), exclude(), exclude_oversized() and prefer() set holds until the next
// call.
class ReferencePlacer {
 public:
  // Chooses in order until set_prices() is called.
  ReferencePlacer(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                  bool keeps_sparse_storage);

  // Limits the time of a solution; when it is over, the best placement found so far is used. 0:
  // solving ends after a bounded effort, which is the same on every machine.
  void set_solve_time_limit(double seconds) { max_seconds_ = seconds; }

  // Without prices, groups that one pass computes get no privilege.
  void follow_order();
  // Without prices, kernels that must be compiled first may be chosen as well.
  void allow_compiling() {
    may_compile_ = true;
    update_forbidden();
  }

  // Later choices use these prices.
  void set_prices(const ChoicePrices& prices);
  // Forbids a candidate that could not be built.
  void forbid(int candidate) {
    failed_to_build_[static_cast<size_t>(candidate)] = true;
    update_forbidden();
  }

  // Forbids candidates, for example because they were not verified. Replaces those of the last
  // call. By candidate; empty: none.
  void exclude(std::vector<bool> candidates) {
    is_excluded_ = std::move(candidates);
    update_forbidden();
  }

  // Forbids candidates that need too much memory for a budget. Replaces those of the last call. By
  // candidate; empty: none.
  void exclude_oversized(std::vector<bool> candidates) {
    is_oversized_ = std::move(candidates);
    update_forbidden();
  }

  // Sets the placement that choose() returns as long as it is usable, because it is known to be the
  // fastest. Empty: no placement is known.
  void prefer(Placement placement) { preferred_ = std::move(placement); }
  const Placement& preferred() const { return preferred_; }
  // Whether `placement` is a legal placement of candidates that are not forbidden.
  bool is_usable(const Placement& placement) const;

  // Chooses. Without prices: in order. With prices: the preferred placement if it is usable.
  // Otherwise the cheapest known placement, unless its gain over in_order() is within the error of
  // measured prices of a whole model: then in_order(). Throws Uncovered for a node that no
  // candidate computes, or none that is compatible with the other choices.
  Placement choose();

  // The placement that choose() returns without prices: the prices that are set only forbid what
  // was refused. Empty if some node has only candidates that need prices to be chosen.
  Placement in_order() const;
  // Returns the gain of the choice without prices over `chosen` if kernels were compiled for it.
  // Returns nullopt if there is no gain, or if kernels may be compiled anyway.
  std::optional<CompilationGain> compilation_gain(const Placement& chosen) const;
  // The cheapest placement by price. Empty if there is none, or none was found.
  Placement solve();
  // solve(), or greedy() if the solver found no placement that can run within its effort.
  Placement solve_or_greedy();
  // A cheap placement, found with a greedy cover and a local search. Empty if that leaves a node
  // uncovered.
  Placement greedy() const;
  // Returns the cheapest placement with the candidates of one backend, given by its preference.
  // Nodes for which it has none use any other backend. Views of all backends may be used. Returns
  // an empty placement if the backend has no candidate, or there is no such placement.
  Placement single_backend(int preference) const;
  // Like single_backend(), but chooses the largest groups that the backend offers, not the cheapest
  // ones.
  Placement unsplit(int preference) const;

  // By candidate: whether it is forbidden.
  std::vector<bool> forbidden() const;
  // The problem. It also forbids the candidates that choose_storage() rules out.
  const PlacementProblem& usable_problem() const { return problem_; }
  // The price of a candidate, including its amortized build time; 0 without prices.
  double candidate_seconds(int candidate) const {
    return has_prices_ ? problem_.candidates[static_cast<size_t>(candidate)].seconds : 0;
  }
  // See PlacementProblem::conversion_prices; empty without prices.
  const std::vector<std::vector<double>>& conversion_prices() const {
    return problem_.conversion_prices;
  }

  // The solution of the newest solve() or choose().
  const PlacementSolution& solution() const { return solved_; }

  // Returns the time of a run plus the amortized build time, by the newest prices.
  double price(const Placement& placement) const;
  // Returns the amortized build time alone.
  double amortized_build_seconds(const Placement& placement) const;
  // Returns the time to build the kernels of `placement`; see PricedOffers::build_seconds().
  double build_seconds(const Placement& placement) const;

  // The predicted time of `placement` and its gap to the lower bound, by the newest prices and
  // solution.
  PlacementDescription describe(const Placement& placement) const;
  // The margins by candidate, as far as they are found within `search_seconds`. Empty if that is 0
  // or the newest solution is not proven optimal.
  std::vector<CandidateMargin> margins(double search_seconds) const;

 private:
  // Chooses in order. If that leaves a node uncovered: the cheapest placement by the estimates of
  // the plug-ins.
  Placement choose_without_prices();
  Placement greedy(const Placement& known) const;
  // The problem of single_backend(); nullopt if the backend has no candidate.
  std::optional<PlacementProblem> problem_of(int preference) const;
  // Recomputes which candidates are forbidden. The newest solution is then outdated.
  void update_forbidden();

  PlacementProblem problem_;  // update_forbidden() updates its is_forbidden
  std::vector<std::string> places_;
  bool has_prices_ = false;
  std::vector<double> estimated_seconds_;        // by candidate: its plug-in's estimate
  std::vector<double> build_seconds_;            // by candidate; empty without prices
  std::vector<double> amortized_build_seconds_;  // by candidate: amortized, included in prices
  bool keeps_sparse_storage_;
  std::vector<bool> is_measured_only_;    // by candidate
  std::vector<double> compile_seconds_;   // by candidate: 0 unless it must be compiled first
  bool may_compile_ = false;              // without prices
  std::vector<bool> is_single_threaded_;  // by candidate: on one thread, while others use all
  std::vector<bool> is_refused_;          // by candidate: by prices
  std::vector<bool> failed_to_build_;     // by candidate
  std::vector<bool> is_excluded_;         // by candidate, or empty
  std::vector<bool> is_oversized_;        // by candidate, or empty
  Placement preferred_;
  PlacementSolution solved_;
  bool is_solved_ = false;    // `solved_` is for the current problem
  double solve_seconds_ = 0;  // of the newest solution
  double max_seconds_ = 0;    // for a solution; 0: no limit
};

}  // namespace tessera
