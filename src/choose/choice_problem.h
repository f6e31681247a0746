// What the choice among offers is made from, as values: candidates, prices and constraints.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/choose_tuning.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

struct ChoiceRules {
  // Without prices, groups that one pass computes get no privilege.
  bool follows_order = false;
  // Without prices, kernels that must be compiled first may be chosen as well.
  bool may_compile = false;
  // Sparse candidates win against dense ones at any price.
  bool keeps_sparse_storage = false;
  // Limits the time of a solution; when it is over, the best placement found so far is used. 0:
  // solving ends after a bounded effort, which is the same on every machine.
  double max_solve_seconds = 0;
  ChooseTuning tuning = {};
};

// The candidates of a graph, without prices. Made once, and never changed.
struct ChoiceProblem {
  PlacementProblem placement_problem;       // candidates have estimated seconds, none is forbidden
  std::vector<std::string> node_locations;  // by node: in error messages
  std::vector<bool> is_measured_only;       // by candidate
  std::vector<bool> is_single_threaded;     // by candidate: on one thread, while others use all
  std::vector<double> compile_seconds;      // by candidate: 0 unless it must be compiled first
  ChoiceRules rules;
};

ChoiceProblem make_choice_problem(const Graph& graph, const Offers& offers,
                                  const LayoutTable& layouts, const ChoiceRules& rules);

// Prices for all candidates of a problem; see PricedOffers::choice_prices().
struct ChoicePrices {
  std::vector<double> seconds;                   // by candidate, with the amortized build time
  std::vector<std::vector<double>> conversions;  // PlacementProblem::conversion_prices
  std::vector<int> results;                      // PlacementProblem::results
  std::vector<bool> is_refused;                  // by candidate: it may not be chosen
  std::vector<double> build_seconds;             // by candidate
  std::vector<double> amortized_build_seconds;   // by candidate
};

// The candidates that must not be chosen, besides those that the prices refuse. Each by candidate;
// empty: none.
struct Constraints {
  std::vector<bool> failed;     // could not be built, or do not fit into the memory of a device
  std::vector<bool> excluded;   // for example because they were not verified
  std::vector<bool> oversized;  // need too much memory for a budget
};

// Adds `candidates` to those that failed. `count` is the number of all candidates.
Constraints with_failed(Constraints constraints, const std::vector<int>& candidates, size_t count);

// What to choose from: a problem, its prices if they are known, and constraints. Immutable.
class ChoiceTask {
 public:
  // Without prices, candidates that need a measured price are forbidden, and unless the rules allow
  // them, kernels that must be compiled first. `problem` must outlive this and its copies.
  ChoiceTask(const ChoiceProblem& problem, std::optional<ChoicePrices> prices,
             Constraints constraints);

  // The same task under other constraints.
  ChoiceTask with(Constraints constraints) const {
    return {*problem_, prices_, std::move(constraints)};
  }

  const ChoiceProblem& problem() const { return *problem_; }
  const std::optional<ChoicePrices>& prices() const { return prices_; }
  const Constraints& constraints() const { return constraints_; }
  // By candidate: whether prices, constraints, or the lack of prices forbid it.
  const std::vector<bool>& forbidden() const { return is_forbidden_; }
  // The problem at these prices, or else at estimates. It also forbids the candidates that
  // choose_storage() rules out.
  const PlacementProblem& placement_problem() const { return placement_problem_; }
  // The price of a candidate; 0 without prices.
  double candidate_seconds(int candidate) const {
    return prices_ ? prices_->seconds[static_cast<size_t>(candidate)] : 0;
  }
  // See PlacementProblem::conversion_prices; empty without prices.
  const std::vector<std::vector<double>>& conversion_prices() const {
    return placement_problem_.conversion_prices;
  }

 private:
  std::vector<bool> find_forbidden() const;

  const ChoiceProblem* problem_;
  std::optional<ChoicePrices> prices_;
  Constraints constraints_;
  std::vector<bool> is_forbidden_;
  PlacementProblem placement_problem_;
};

}  // namespace tessera
