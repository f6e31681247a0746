#include "solver/elimination_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

#include "base/containers/at.h"

namespace tessera {
namespace {

void sort_unique(std::vector<int>& set) {
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
}

class Planner {
 public:
  explicit Planner(const CostNetwork& network)
      : sizes_(network.domain_sizes), neighbours_(sizes_.size()), scores_(sizes_.size(), 0) {
    for (const CostFactor& factor : network.factors) {
      for (const int variable : factor.variables) {
        std::vector<int>& others = neighbours_[at(variable)];
        others.insert(others.end(), factor.variables.begin(), factor.variables.end());
      }
    }
    for (size_t variable = 0; variable < sizes_.size(); ++variable) {
      sort_unique(neighbours_[variable]);
      std::erase(neighbours_[variable], static_cast<int>(variable));
      score(static_cast<int>(variable));
    }
  }

  EliminationPlan plan(double max_cells) {
    EliminationPlan plan;
    while (!queue_.empty()) {
      const auto [cells, variable] = queue_.top();
      queue_.pop();
      if (scores_[at(variable)] != cells) continue;
      if (cells > max_cells) return plan;
      plan.largest_cells = std::max(plan.largest_cells, cells);
      plan.total_cells += cells;
      eliminate(variable);
    }
    plan.is_complete = true;
    return plan;
  }

 private:
  void score(int variable) {
    double cells = sizes_[at(variable)];
    for (const int other : neighbours_[at(variable)]) cells *= sizes_[at(other)];
    scores_[at(variable)] = cells;
    queue_.emplace(cells, variable);
  }

  void eliminate(int variable) {
    constexpr double kGone = -1;
    scores_[at(variable)] = kGone;
    const std::vector<int> around = std::move(neighbours_[at(variable)]);
    for (const int other : around) {
      std::vector<int>& known = neighbours_[at(other)];
      std::vector<int> joint;
      std::set_union(known.begin(), known.end(), around.begin(), around.end(),
                     std::back_inserter(joint));
      std::erase_if(joint, [&](int index) { return index == other || index == variable; });
      known = std::move(joint);
      score(other);
    }
  }

  const std::vector<int>& sizes_;
  std::vector<std::vector<int>> neighbours_;  // ascending
  std::vector<double> scores_;                // cells; -1: eliminated
  using Scored = std::pair<double, int>;
  std::priority_queue<Scored, std::vector<Scored>, std::greater<>> queue_;
};

}  // namespace

EliminationPlan plan_elimination(const CostNetwork& network, double max_cells) {
  return Planner(network).plan(max_cells);
}

}  // namespace tessera
