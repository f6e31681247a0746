#include "place/solve_placement.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/containers/at.h"
#include "place/explain_violation.h"
#include "place/placement_network.h"

namespace tessera {
namespace {

// Sums in different orders differ by less than this. Such a difference must not count as a gap.
constexpr double kPriceRounding = 1e-12;
// Work of building and reducing a network, for each cell of its tables.
constexpr double kWorkOfCell = 8;

// Chosen candidates in an order in which they can run, except for those on cycles.
struct Order {
  std::vector<int> running;
  std::vector<std::vector<int>> cycles;  // disjoint; empty: all can run in order
};

class TopologicalSorter {
 public:
  TopologicalSorter(const PlacementProblem& problem, const std::vector<int>& chosen)
      : problem_(problem), chosen_(chosen), followers_(chosen.size()), before_(chosen.size()) {
    std::vector<std::vector<size_t>> makers(at(problem.value_count));
    for (size_t position = 0; position < chosen.size(); ++position) {
      for (const PlacementPort& port : problem.candidates[at(chosen[position])].outputs) {
        makers[at(port.value)].push_back(position);
      }
    }
    for (size_t position = 0; position < chosen.size(); ++position) {
      for (const PlacementPort& port : problem.candidates[at(chosen[position])].inputs) {
        for (const size_t maker : makers[at(port.value)]) {
          followers_[maker].push_back(position);
          before_[position].push_back(maker);
        }
      }
    }
  }

  Order sort() const {
    Order order;
    std::vector<size_t> waits_for(chosen_.size());
    using Ready = std::pair<int, size_t>;  // last node, place
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    const auto release = [&](size_t position) {
      ready.emplace(problem_.candidates[at(chosen_[position])].nodes.back(), position);
    };
    for (size_t position = 0; position < chosen_.size(); ++position) {
      waits_for[position] = before_[position].size();
      if (waits_for[position] == 0) release(position);
    }
    std::vector<bool> is_done(chosen_.size(), false);
    while (order.running.size() < chosen_.size()) {
      if (ready.empty()) {
        const std::vector<size_t> cycle = find_cycle(is_done);
        std::vector<int>& members = order.cycles.emplace_back();
        for (const size_t position : cycle) members.push_back(chosen_[position]);
        // Releases the members as if they were ready, so that the candidates after them are checked
        // for further cycles.
        for (const size_t position : cycle) waits_for[position] = 0;
        for (const size_t position : cycle) release(position);
      }
      const size_t position = ready.top().second;
      ready.pop();
      is_done[position] = true;
      order.running.push_back(chosen_[position]);
      for (const size_t follower : followers_[position]) {
        if (waits_for[follower] == 0) continue;
        --waits_for[follower];
        if (waits_for[follower] == 0) release(follower);
      }
    }
    return order;
  }

 private:
  // Every candidate that is not done depends on another one that is not done, so following these
  // dependencies must reach a cycle.
  std::vector<size_t> find_cycle(const std::vector<bool>& is_done) const {
    size_t position = 0;
    while (is_done[position]) ++position;
    std::vector<size_t> path;
    std::vector<bool> is_on_path(is_done.size(), false);
    while (!is_on_path[position]) {
      is_on_path[position] = true;
      path.push_back(position);
      position = *std::find_if(before_[position].begin(), before_[position].end(),
                               [&](size_t maker) { return !is_done[maker]; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), position));
    return path;
  }

  const PlacementProblem& problem_;
  const std::vector<int>& chosen_;
  std::vector<std::vector<size_t>> followers_;
  std::vector<std::vector<size_t>> before_;
};

class PlacementSearch {
 public:
  PlacementSearch(const PlacementProblem& problem, const PlacementEffort& effort,
                  const std::vector<Decision>& decisions)
      : problem_(problem), effort_(effort), decided_(decisions), network_(problem) {}

  PlacementSolution solve() {
    add(solve_branch(decided_));
    while (!open_.empty() && !is_at_end()) {
      const Branch branch = take();
      if (branch.lower_bound >= best_.seconds * (1 - kPriceRounding)) break;
      split(branch);
    }
    if (!best_.is_found() && !open_.empty()) repair(open_.front());
    best_.lower_bound = std::min(best_.seconds, pruned_bound_);
    for (const Branch& branch : open_) {
      best_.lower_bound = std::min(best_.lower_bound, branch.lower_bound);
    }
    // Costs that differ only by rounding are equal.
    if (best_.lower_bound >= best_.seconds * (1 - kPriceRounding))
      best_.lower_bound = best_.seconds;
    return std::move(best_);
  }

 private:
  struct Branch {
    std::vector<Decision> decisions;
    double lower_bound = 0;
    std::vector<int> chosen;               // ascending; empty if nothing was found in time
    std::vector<std::vector<int>> cycles;  // among `chosen`
  };

  static bool is_later(const Branch& left, const Branch& right) {
    return left.lower_bound > right.lower_bound;
  }

  bool is_at_end() const {
    return best_.networks >= effort_.networks || effort_.network.is_over(best_.work_cells);
  }

  // Solves one network, and solves it again with the cycles of its solution forbidden, until a
  // solution has none. A placement that keeps all constraints replaces the best one if it is
  // cheaper.
  Branch solve_branch(const std::vector<Decision>& decisions) {
    Branch branch = solve_network(decisions, effort_.network.work_cells - best_.work_cells);
    while (!branch.cycles.empty() && !is_at_end()) {
      bool is_forbidden = false;
      for (const std::vector<int>& cycle : branch.cycles) {
        is_forbidden = network_.add_nogood(cycle) || is_forbidden;
      }
      if (!is_forbidden) break;
      const double bound = branch.lower_bound;
      branch = solve_network(decisions, effort_.network.work_cells - best_.work_cells);
      branch.lower_bound = std::max(branch.lower_bound, bound);
    }
    return branch;
  }

  Branch solve_network(const std::vector<Decision>& decisions, double work_cells) {
    NetworkEffort effort = effort_.network;
    effort.work_cells = work_cells;
    const CostNetwork network = network_.state(decisions);
    const NetworkSolution solved = minimise(network, effort);
    ++best_.networks;
    best_.work_cells += solved.work_cells;
    for (const CostFactor& factor : network.factors) {
      best_.work_cells += kWorkOfCell * static_cast<double>(factor.costs.size());
    }
    Branch branch;
    branch.decisions = decisions;
    branch.lower_bound = solved.lower_bound;
    if (solved.cost != kForbidden) consider(branch, solved);
    return branch;
  }

  void consider(Branch& branch, const NetworkSolution& solved) {
    const std::vector<int>& values = solved.values;
    branch.chosen = network_.chosen(values);
    Order order = TopologicalSorter(problem_, branch.chosen).sort();
    branch.cycles = std::move(order.cycles);
    if (!branch.cycles.empty()) return;
    std::vector<PlacementConversion> conversions = network_.conversions(values);
    double seconds = 0;
    for (const int index : order.running) seconds += problem_.candidates[at(index)].seconds;
    for (const PlacementConversion& one : conversions) {
      seconds += conversion_price(problem_, one.value, one.from, one.to);
    }
    if (seconds >= best_.seconds) return;
    best_.placement.chosen = order.running;
    best_.conversions = std::move(conversions);
    best_.seconds = seconds;
  }

  void add(Branch branch) {
    if (branch.lower_bound == kForbidden) return;
    open_.push_back(std::move(branch));
    std::push_heap(open_.begin(), open_.end(), is_later);
  }

  Branch take() {
    std::pop_heap(open_.begin(), open_.end(), is_later);
    Branch branch = std::move(open_.back());
    open_.pop_back();
    return branch;
  }

  // Splits `branch` into: placements without the first suspect; with the first and without the
  // second; and so on. The suspects are the candidates of a cycle; if there is none, but the
  // solution is not proven optimal, all of its candidates. Placements with all suspects need no
  // branch: there are none, or only the known one.
  void split(const Branch& branch) {
    if (branch.chosen.empty()) {
      pruned_bound_ = std::min(pruned_bound_, branch.lower_bound);
      return;
    }
    std::vector<Decision> decisions = branch.decisions;
    for (const int suspect : branch.cycles.empty() ? branch.chosen : branch.cycles[0]) {
      const bool is_decided = std::any_of(
          branch.decisions.begin(), branch.decisions.end(),
          [&](const Decision& known) { return known.candidate == suspect && known.is_chosen; });
      if (is_decided) continue;
      decisions.push_back({suspect, false});
      Branch part = solve_branch(decisions);
      part.lower_bound = std::max(part.lower_bound, branch.lower_bound);
      add(std::move(part));
      decisions.back().is_chosen = true;
    }
  }

  // For an effort that ended before a solution without cycles was found: forbids one group of each
  // cycle, so that there is a placement that can run.
  void repair(Branch branch) {
    while (!best_.is_found() && !branch.cycles.empty()) {
      std::vector<Decision> decisions = branch.decisions;
      for (const std::vector<int>& cycle : branch.cycles) {
        const auto group = std::find_if(cycle.begin(), cycle.end(), [&](int index) {
          return problem_.candidates[at(index)].nodes.size() > 1;
        });
        if (group == cycle.end()) return;
        decisions.push_back({*group, false});
      }
      branch = solve_network(decisions, effort_.network.work_cells);
    }
  }

  const PlacementProblem& problem_;
  PlacementEffort effort_;
  const std::vector<Decision>& decided_;  // by the caller
  PlacementNetwork network_;
  PlacementSolution best_;
  std::vector<Branch> open_;          // a heap, the lowest bound first
  double pruned_bound_ = kForbidden;  // of branches in which nothing was found in time
};

}  // namespace

PlacementSolution solve_placement(const PlacementProblem& problem, const PlacementEffort& effort,
                                  const std::vector<Decision>& decisions) {
  return checked(problem, PlacementSearch(problem, effort, decisions).solve());
}

}  // namespace tessera
