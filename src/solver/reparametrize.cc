#include "solver/reparametrize.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/containers/at.h"
#include "solver/dominated_values.h"
#include "solver/dual_ascent.h"
#include "solver/elimination_plan.h"
#include "solver/improve_assignment.h"
#include "solver/reduction.h"

namespace tessera {
namespace {

// The size limit of tables that elimination may create before costs are moved.
constexpr double kCoreCells = 1 << 8;
constexpr int kPasses = 30;  // per round
constexpr int kRounds = 20;
// Passes before the first answer even if the effort is exhausted: without them, an answer is
// neither good nor found quickly.
constexpr int kMinPasses = 4;
// Relative to the gap: stops after a round that closes less.
constexpr double kMinSweepGain = 0.05;

class CostMover {
 public:
  CostMover(const CostNetwork& network, const NetworkEffort& effort, double upper_bound)
      : network_(network), effort_(effort), outer_(network) {
    solution_.cost = upper_bound;
    solution_.lower_bound = 0;
    for (int next = outer_.next(); next >= 0 && outer_.score(next) <= kCoreCells;
         next = outer_.next()) {
      solution_.work_cells += outer_.eliminate(next);
    }
    std::tie(core_, variables_) = outer_.left();
    for (const int size : core_.domain_sizes) {
      auto& kept = kept_.emplace_back(at(size));
      for (size_t value = 0; value < kept.size(); ++value) kept[value] = static_cast<int>(value);
    }
    moved_ = outer_.constant();
  }

  NetworkSolution run(const std::function<NetworkSolution(const CostNetwork&, const NetworkEffort&,
                                                          double)>& search) {
    double gap = kForbidden;
    for (int round = 0; round < kRounds && (round == 0 || !is_over()); ++round) {
      run_round();
      if (is_proven()) return std::move(solution_);
      if (is_small()) break;
      const double now = solution_.cost - solution_.lower_bound;
      if (now > gap * (1 - kMinSweepGain)) break;
      gap = now;
    }
    if (is_over()) return std::move(solution_);
    NetworkEffort left = effort_;
    left.work_cells -= solution_.work_cells;
    const NetworkSolution found = search(core_, left, solution_.cost - moved_);
    solution_.work_cells += found.work_cells;
    raise_bound(std::min(found.lower_bound + moved_, solution_.cost));
    if (!found.values.empty()) consider(found.values);
    return std::move(solution_);
  }

 private:
  bool is_over() const { return effort_.is_over(solution_.work_cells); }
  bool is_proven() const { return solution_.lower_bound >= solution_.cost; }
  void raise_bound(double bound) { solution_.lower_bound = std::max(solution_.lower_bound, bound); }
  bool is_small() const {
    const EliminationPlan plan = plan_elimination(core_, effort_.table_cells);
    return plan.is_complete && plan.total_cells <= effort_.work_cells - solution_.work_cells;
  }

  // One round: bound, assignment, removal of values.
  void run_round() {
    DualAscent ascent(core_);
    const int min_passes = solution_.cost == kForbidden ? kMinPasses : 0;
    for (int pass = 0; pass < kPasses && (pass < min_passes || !is_over()); ++pass) {
      solution_.work_cells += ascent.ascend();
    }
    // If the rest is infeasible, the best known assignment is optimal.
    raise_bound(std::min(ascent.bound() + moved_, solution_.cost));
    if (is_proven()) return;
    std::vector<int> values = ascent.decode();
    NetworkEffort left = effort_;
    left.work_cells -= solution_.work_cells;
    solution_.work_cells += improve_assignment(ascent.network(), left, values);
    consider(values);
    if (is_proven() || is_over()) return;
    if (solution_.cost != kForbidden) ascent.forbid_above(solution_.cost - moved_);
    moved_ += ascent.constant();
    ReducedNetwork reduced = remove_dominated_values(ascent.network());
    core_ = std::move(reduced.network);
    for (size_t variable = 0; variable < kept_.size(); ++variable) {
      std::vector<int> kept;
      for (const int value : reduced.kept[variable]) kept.push_back(kept_[variable][at(value)]);
      kept_[variable] = std::move(kept);
    }
  }

  // Records an assignment of the core if, completed, it is the best so far.
  void consider(const std::vector<int>& values) {
    std::vector<int> whole(network_.domain_sizes.size(), 0);
    for (size_t variable = 0; variable < values.size(); ++variable) {
      whole[at(variables_[variable])] = kept_[variable][at(values[variable])];
    }
    outer_.complete(whole);
    const double cost = cost_of(network_, whole);
    if (cost >= solution_.cost) return;
    solution_.cost = cost;
    solution_.values = std::move(whole);
  }

  const CostNetwork& network_;
  const NetworkEffort& effort_;
  Reduction outer_;                     // the eliminated part, whose tables were small
  CostNetwork core_;                    // the remaining part; shrinks
  std::vector<int> variables_;          // of the core: index in the network
  std::vector<std::vector<int>> kept_;  // of the core: remaining values
  double moved_ = 0;                    // cost moved out of the core
  NetworkSolution solution_;
};

}  // namespace

NetworkSolution minimise_by_reparametrization(
    const CostNetwork& network, const NetworkEffort& effort, double upper_bound,
    const std::function<NetworkSolution(const CostNetwork&, const NetworkEffort&, double)>&
        search) {
  return CostMover(network, effort, upper_bound).run(search);
}

}  // namespace tessera
