// The choice among what was offered: in order, or by price.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/price_offers.h"
#include "graph/graph.h"
#include "place/margins.h"
#include "place/placement.h"
#include "place/solve_placement.h"
#include "tessera/tessera.h"

namespace tessera {

// Keeps the problem, what may not be used in it, and its newest solution.
class Placer {
 public:
  // Until it gets prices it chooses in order.
  Placer(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
         bool keeps_sparse_storage);

  // Solving ends after so long with what is known then; 0: after a bounded effort, which is the
  // same on every machine.
  void set_solve_time_limit(double seconds) { max_seconds_ = seconds; }

  // From here on choices are made by these prices.
  void set_prices(const PricedOffers& prices);
  // A candidate that could not be built.
  void forbid(int candidate) {
    is_broken_[static_cast<size_t>(candidate)] = true;
    settle();
  }

  // By candidate, what nobody has seen to be right and may not be used for that; empty: nothing.
  void exclude(std::vector<bool> candidates) {
    is_excluded_ = std::move(candidates);
    settle();
  }

  // By candidate, what takes too much memory for a budget; empty: nothing.
  void exclude_oversized(std::vector<bool> candidates) {
    is_oversized_ = std::move(candidates);
    settle();
  }

  // What choose() gives as long as it can be used: it is known to be the fastest. Nothing chosen:
  // there is nothing like it.
  void prefer(Placement placement) { preferred_ = std::move(placement); }
  const Placement& preferred() const { return preferred_; }
  // Whether every candidate of it may be used, and they make a placement.
  bool is_usable(const Placement& placement) const;

  // The choice: without prices in order. With them the preferred one, or the cheapest known, unless
  // what would be chosen without is as cheap, give or take what measured prices of a whole model
  // are off by. Throws Uncovered for a node that nobody can compute, or not beside the others.
  Placement choose();

  // What choose() would give without prices; nothing chosen where only candidates are left that are
  // not chosen without.
  Placement in_order() const;
  // The cheapest by prices; nothing chosen where there is none, or none was found.
  Placement solve();
  // By prices, with a greedy cover and a descent; nothing chosen where that comes to no end.
  Placement greedy() const;
  // The cheapest with the candidates of one backend, by its preference, and for nodes for which it
  // has none those of the backends that are asked after it. Nothing chosen where it has none at
  // all.
  Placement alone(int preference) const;

  // By candidate, what may not be used.
  std::vector<bool> forbidden() const;
  // The problem with everything forbidden that may not be used.
  const PlacementProblem& usable_problem() const { return problem_; }
  // What a candidate takes by the newest prices, its part of building included; 0 without.
  double candidate_seconds(int candidate) const {
    return has_prices_ ? problem_.candidates[static_cast<size_t>(candidate)].seconds : 0;
  }
  // As PlacementProblem has them; empty without prices.
  const std::vector<std::vector<double>>& conversion_prices() const {
    return problem_.conversion_prices;
  }

  // Of the newest solve() or choose().
  const PlacementSolution& solution() const { return solved_; }

  // By the newest prices: what a run takes, and the part of building that it has to earn.
  double price(const Placement& placement) const;
  // That part alone.
  double amortized_build_seconds(const Placement& placement) const;
  // All of what building its kernels takes, as far as that was measured.
  double build_seconds(const Placement& placement) const;

  // How good `placement` is by the newest prices and solution.
  PlacementDescription describe(const Placement& placement) const;
  // What candidates lack to be chosen; none where the newest solution is not proven the cheapest.
  std::vector<CandidateMargin> margins(double search_seconds) const;

 private:
  // In order, and where that comes to no end, the cheapest by what candidates say of themselves.
  Placement choose_without_prices();
  Placement greedy(const Placement& known) const;
  // States anew what may not be used.
  void settle();

  PlacementProblem problem_;  // with everything forbidden that may not be used
  std::vector<std::string> places_;
  bool has_prices_ = false;
  std::vector<double> build_seconds_;  // by candidate, by the newest prices; empty without
  std::vector<double> build_parts_;    // of these, in prices
  bool keeps_sparse_storage_;
  std::vector<bool> is_measured_only_;  // by candidate
  std::vector<bool> is_alone_;          // by candidate: on one thread, where others are on several
  std::vector<bool> is_refused_;        // by candidate: by prices
  std::vector<bool> is_broken_;         // by candidate
  std::vector<bool> is_excluded_;       // by candidate, or empty
  std::vector<bool> is_oversized_;      // by candidate, or empty
  Placement preferred_;
  PlacementSolution solved_;
  bool is_solved_ = false;    // `solved_` is of the problem as it is
  double solve_seconds_ = 0;  // of the newest solution
  double max_seconds_ = 0;    // for a solution; 0: no limit
};

// What placer.choose() gives. Throws Unsupported where no choice computes every node of `graph`,
// with what each backend offered for the node that is left over, and what it refused.
Placement choose_covering(Placer& placer, const Offers& offers, const Graph& graph);

}  // namespace tessera
