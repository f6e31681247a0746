#include "place/solve_placement.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "place/placement_network.h"

namespace tessera {
namespace {

// Sums in different orders differ by less, which must not look like something to be searched for.
constexpr double kRounding = 1e-12;
// Steps towards the best price of a byte.
constexpr int kByteSteps = 30;

size_t at(int index) { return static_cast<size_t>(index); }

// Chosen candidates in an order in which they can run, or those of a cycle.
struct Order {
  std::vector<int> running;
  std::vector<int> cycle;  // empty: all run
};

class Sorter {
 public:
  Sorter(const PlacementProblem& problem, const std::vector<int>& chosen)
      : problem_(problem), chosen_(chosen), followers_(chosen.size()), before_(chosen.size()) {
    std::vector<std::vector<size_t>> makers(at(problem.value_count));
    for (size_t place = 0; place < chosen.size(); ++place) {
      for (const PlacementPort& port : problem.candidates[at(chosen[place])].outputs) {
        makers[at(port.value)].push_back(place);
      }
    }
    for (size_t place = 0; place < chosen.size(); ++place) {
      for (const PlacementPort& port : problem.candidates[at(chosen[place])].inputs) {
        for (const size_t maker : makers[at(port.value)]) {
          followers_[maker].push_back(place);
          before_[place].push_back(maker);
        }
      }
    }
  }

  Order sort() const {
    Order order;
    std::vector<size_t> waits_for(chosen_.size());
    using Ready = std::pair<int, size_t>;  // last node, place
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    const auto release = [&](size_t place) {
      ready.emplace(problem_.candidates[at(chosen_[place])].nodes.back(), place);
    };
    for (size_t place = 0; place < chosen_.size(); ++place) {
      waits_for[place] = before_[place].size();
      if (waits_for[place] == 0) release(place);
    }
    while (!ready.empty()) {
      const size_t place = ready.top().second;
      ready.pop();
      order.running.push_back(chosen_[place]);
      for (const size_t follower : followers_[place]) {
        if (--waits_for[follower] == 0) release(follower);
      }
    }
    if (order.running.size() < chosen_.size()) order.cycle = find_cycle(waits_for);
    return order;
  }

 private:
  // Whoever still waits waits for one who waits: going back must come round.
  std::vector<int> find_cycle(const std::vector<size_t>& waits_for) const {
    size_t place = 0;
    while (waits_for[place] == 0) ++place;
    std::vector<size_t> path;
    while (std::find(path.begin(), path.end(), place) == path.end()) {
      path.push_back(place);
      place = *std::find_if(before_[place].begin(), before_[place].end(),
                            [&](size_t maker) { return waits_for[maker] > 0; });
    }
    std::vector<int> cycle;
    for (auto from = std::find(path.begin(), path.end(), place); from != path.end(); ++from) {
      cycle.push_back(chosen_[*from]);
    }
    return cycle;
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
    Branch root = solve_branch(decided_);
    if (is_over_limit(root)) {
      price_bytes(kept_bytes(root.chosen));
      root = solve_branch(decided_);
    }
    add(std::move(root));
    while (!open_.empty() && !is_at_end()) {
      const Branch branch = take();
      if (branch.lower_bound >= best_.seconds * (1 - kRounding)) break;
      split(branch);
    }
    best_.lower_bound = std::min(best_.seconds, given_up_bound_);
    for (const Branch& branch : open_) {
      best_.lower_bound = std::min(best_.lower_bound, branch.lower_bound);
    }
    // What differs by rounding only is equal.
    if (best_.lower_bound >= best_.seconds * (1 - kRounding)) best_.lower_bound = best_.seconds;
    return std::move(best_);
  }

 private:
  struct Branch {
    std::vector<Decision> decisions;
    double lower_bound = 0;
    std::vector<int> chosen;  // ascending; empty where nothing was found in time
  };

  static bool is_later(const Branch& left, const Branch& right) {
    return left.lower_bound > right.lower_bound;
  }

  bool is_at_end() const {
    return best_.networks >= effort_.networks || best_.work_cells >= effort_.network.work_cells;
  }

  int64_t kept_bytes(const std::vector<int>& chosen) const {
    return std::accumulate(chosen.begin(), chosen.end(), int64_t{0}, [&](int64_t sum, int index) {
      return sum + problem_.candidates[at(index)].kept_bytes;
    });
  }

  bool is_over_limit(const Branch& branch) const {
    return kept_bytes(branch.chosen) > problem_.kept_bytes_limit;
  }

  // What the limit gives back of the price on bytes.
  double allowance() const {
    return seconds_per_byte_ == 0
               ? 0
               : seconds_per_byte_ * static_cast<double>(problem_.kept_bytes_limit);
  }

  // Solves one network; a placement that keeps all promises may become the best.
  Branch solve_branch(std::vector<Decision> decisions) {
    NetworkEffort effort = effort_.network;
    effort.work_cells -= best_.work_cells;
    const NetworkSolution solved = minimise(network_.state(decisions, seconds_per_byte_), effort);
    ++best_.networks;
    best_.work_cells += solved.work_cells;
    Branch branch;
    branch.decisions = std::move(decisions);
    branch.lower_bound = solved.lower_bound - allowance();
    if (solved.cost != kForbidden) consider(branch, solved.values);
    return branch;
  }

  void consider(Branch& branch, const std::vector<int>& values) {
    branch.chosen = network_.chosen(values);
    if (is_over_limit(branch)) return;
    const Order order = Sorter(problem_, branch.chosen).sort();
    if (!order.cycle.empty()) return;
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

  // Those of which at least one must go, or, where the answer is sound but its proof is not, those
  // by which it can be told from others.
  std::vector<int> suspects(const Branch& branch) const {
    std::vector<int> cycle = Sorter(problem_, branch.chosen).sort().cycle;
    if (!cycle.empty()) return cycle;
    std::vector<int> chosen = branch.chosen;
    if (is_over_limit(branch)) {
      std::erase_if(chosen,
                    [&](int index) { return problem_.candidates[at(index)].kept_bytes == 0; });
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](int left, int right) {
      return problem_.candidates[at(left)].kept_bytes > problem_.candidates[at(right)].kept_bytes;
    });
    return chosen;
  }

  // Shares the placements of `branch` out: without the first suspect; with it and without the
  // second; and so on. With all of them there is none, or the one that is known.
  void split(const Branch& branch) {
    if (branch.chosen.empty()) {
      given_up_bound_ = std::min(given_up_bound_, branch.lower_bound);
      return;
    }
    std::vector<Decision> decisions = branch.decisions;
    for (const int suspect : suspects(branch)) {
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

  // Looks for the price of a byte with the best bound: what is kept falls as it rises.
  void price_bytes(int64_t bytes_for_nothing) {
    const Branch free = solve_branch(decided_);
    double low = 0;
    double high = std::max(free.lower_bound, 1e-9) / static_cast<double>(bytes_for_nothing);
    seconds_per_byte_ = high;
    for (int step = 0; step < kByteSteps && is_over_limit(solve_branch(decided_)); ++step) {
      high *= 2;
      seconds_per_byte_ = high;
    }
    double best_bound = free.lower_bound;
    double best_price = 0;
    for (int step = 0; step < kByteSteps; ++step) {
      seconds_per_byte_ = (low + high) / 2;
      const Branch middle = solve_branch(decided_);
      if (middle.lower_bound > best_bound) {
        best_bound = middle.lower_bound;
        best_price = seconds_per_byte_;
      }
      (is_over_limit(middle) ? low : high) = seconds_per_byte_;
    }
    seconds_per_byte_ = best_price;
  }

  const PlacementProblem& problem_;
  PlacementEffort effort_;
  const std::vector<Decision>& decided_;  // before solving
  PlacementNetwork network_;
  double seconds_per_byte_ = 0;
  PlacementSolution best_;
  std::vector<Branch> open_;            // a heap, the least bound first
  double given_up_bound_ = kForbidden;  // of branches in which nothing was found in time
};

}  // namespace

PlacementSolution solve_placement(const PlacementProblem& problem, const PlacementEffort& effort,
                                  const std::vector<Decision>& decisions) {
  return PlacementSearch(problem, effort, decisions).solve();
}

}  // namespace tessera
