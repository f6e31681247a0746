#include "plan/order_steps.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/containers/at.h"
#include "base/errors/check.h"

namespace tessera {
namespace {

constexpr int64_t kBeamWidth = 24;
// The number of step evaluations that beam search needs for each of its states and each step of the
// piece.
constexpr int64_t kBeamEvaluations = 4;

constexpr int64_t kMaxEvaluationCost = 10'000'000;

// A subset of the steps of a piece.
class StepSet {
 public:
  explicit StepSet(size_t size) : words_((size + 63) / 64, 0) {}
  bool has(size_t step) const { return (words_[step / 64] >> (step % 64) & 1U) != 0; }
  void add(size_t step) { words_[step / 64] |= uint64_t{1} << (step % 64); }

  bool operator==(const StepSet& other) const = default;
  size_t hash() const {
    uint64_t hash = 0;
    for (const uint64_t word : words_) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29U;
    }
    return hash;
  }

 private:
  std::vector<uint64_t> words_;
};

struct HashOfSet {
  size_t operator()(const StepSet& set) const { return set.hash(); }
};

// Steps [begin, end) of the given order. They run after all steps before `begin` and before all
// steps from `end` on.
struct Piece {
  int begin = 0;
  int end = 0;
  int64_t peak_bytes = 0;  // of the best known order
};

// How a step changes the live memory.
struct Effect {
  int64_t peak_bytes = 0;  // while it runs
  int64_t live_bytes = 0;  // afterwards
};

// Which steps use each block.
class BlockUsers {
 public:
  explicit BlockUsers(const OrderProblem& problem)
      : problem_(problem), users_(problem.block_bytes.size()) {
    for (size_t step = 0; step < problem.steps.size(); ++step) {
      for (const int block : problem.steps[step].blocks) {
        users_[at(block)].push_back(static_cast<int>(step));
      }
    }
  }

  // The cost of evaluating all steps of a piece once.
  int64_t evaluation_cost(const Piece& piece) const {
    int64_t cost = 0;
    for (int step = piece.begin; step < piece.end; ++step) {
      for (const int block : problem_.steps[at(step)].blocks) {
        cost += 1 + static_cast<int64_t>(users_[at(block)].size());
      }
    }
    return cost;
  }

  // The effect of `step` in the given order: all steps before it have run.
  Effect effect_in_order(int step, int64_t live_bytes) const {
    return effect_of(
        step, live_bytes, [&](int block) { return users_[at(block)].front() == step; },
        [&](int block) { return users_[at(block)].back() == step; });
  }

  // The effect of `step` after the steps for which `has_run` holds, if `live_bytes` are live before
  // it.
  template <class HasRun>
  Effect effect(int step, int64_t live_bytes, const HasRun& has_run) const {
    return effect_of(
        step, live_bytes, [&](int block) { return is_new(block, step, has_run); },
        [&](int block) { return is_last(block, step, has_run); });
  }

 private:
  template <class IsNew, class IsLast>
  Effect effect_of(int step, int64_t live_bytes, const IsNew& is_new, const IsLast& is_last) const {
    const OrderStep& run = problem_.steps[at(step)];
    int64_t taken = 0;
    int64_t freed = 0;
    for (const int block : run.blocks) {
      if (is_new(block)) taken += problem_.block_bytes[at(block)];
      if (is_last(block)) freed += problem_.block_bytes[at(block)];
    }
    int64_t shared = 0;
    for (const OrderStep::InPlace& pair : run.in_place) {
      const bool can_share = is_new(pair.to) && is_last(pair.from);
      if (can_share) shared += problem_.block_bytes[at(pair.to)];
    }
    return {.peak_bytes = live_bytes + taken - shared + run.workspace_bytes,
            .live_bytes = live_bytes + taken - freed};
  }

  template <class HasRun>
  bool is_new(int block, int step, const HasRun& has_run) const {
    return std::none_of(users_[at(block)].begin(), users_[at(block)].end(),
                        [&](int user) { return user != step && has_run(user); });
  }

  template <class HasRun>
  bool is_last(int block, int step, const HasRun& has_run) const {
    return std::all_of(users_[at(block)].begin(), users_[at(block)].end(),
                       [&](int user) { return user == step || has_run(user); });
  }

  const OrderProblem& problem_;
  std::vector<std::vector<int>> users_;  // by block, ascending
};

// Orders one piece. Which steps run before and after the piece is fixed.
class PieceSearch {
 public:
  PieceSearch(const OrderProblem& problem, const BlockUsers& users, const Piece& piece,
              int64_t live_before)
      : problem_(problem),
        users_(users),
        piece_(piece),
        size_(at(piece.end - piece.begin)),
        live_before_(live_before) {}

  struct Result {
    std::vector<int> order;  // empty: none was found below the limit
    bool is_exact = true;    // proven: none has a lower peak, or none is below the limit
  };

  // Searches for an order with a peak below `limit`; a peak of `enough`, which is lower, need not
  // be improved. Subtracts the work done from `effort`.
  Result search(int64_t limit, int64_t enough, int64_t& effort) {
    enough_ = enough;
    limit_ = limit;
    effort_ = effort;
    std::optional<int> last = best_first();
    const bool is_exact = last.has_value() || effort_ > 0;
    if (!is_exact) last = beam(effort);
    effort = effort_;
    return {last ? path_to(*last) : std::vector<int>{}, is_exact};
  }

 private:
  struct State {
    StepSet done;
    size_t count = 0;
    int64_t peak_bytes = 0;
    int64_t live_bytes = 0;
    int parent = -1;         // index of a state
    std::vector<int> steps;  // that lead from the parent to this state
  };

  auto has_run(const StepSet& done) const {
    return [this, &done](int step) {
      if (step < piece_.begin) return true;
      return step < piece_.end && done.has(at(step - piece_.begin));
    };
  }

  bool is_ready(const StepSet& done, int step) const {
    const std::vector<int>& after = problem_.steps[at(step)].after;
    return std::all_of(after.begin(), after.end(), has_run(done));
  }

  State first_state() {
    State state{.done = StepSet(size_), .peak_bytes = enough_, .live_bytes = live_before_};
    run_free_steps(state);
    return state;
  }

  // Running such a step now is optimal: it does not raise the peak, and it lowers the live memory,
  // or leaves it unchanged, for all steps that would otherwise run before it.
  void run_free_steps(State& state) {
    bool has_run_one = true;
    while (has_run_one && effort_ > 0) {
      has_run_one = false;
      effort_ -= piece_.end - piece_.begin;
      for (int step = piece_.begin; step < piece_.end; ++step) {
        if (state.done.has(at(step - piece_.begin)) || !is_ready(state.done, step)) continue;
        const Effect effect = users_.effect(step, state.live_bytes, has_run(state.done));
        if (effect.live_bytes > state.live_bytes || effect.peak_bytes > state.peak_bytes) continue;
        run(state, step, effect);
        has_run_one = true;
      }
    }
  }

  void run(State& state, int step, const Effect& effect) const {
    state.done.add(at(step - piece_.begin));
    ++state.count;
    state.peak_bytes = std::max(state.peak_bytes, effect.peak_bytes);
    state.live_bytes = effect.live_bytes;
    state.steps.push_back(step);
  }

  // Calls `use` with each state that one more step leads to, if its peak is below the limit.
  template <class Use>
  void expand(int parent, const Use& use) {
    for (int step = piece_.begin; step < piece_.end; ++step) {
      const State& from = states_[at(parent)];
      if (from.done.has(at(step - piece_.begin)) || !is_ready(from.done, step)) continue;
      const Effect effect = users_.effect(step, from.live_bytes, has_run(from.done));
      if (effect.peak_bytes >= limit_) continue;
      State to{.done = from.done,
               .count = from.count,
               .peak_bytes = from.peak_bytes,
               .live_bytes = from.live_bytes,
               .parent = parent};
      run(to, step, effect);
      run_free_steps(to);
      use(std::move(to));
    }
  }

  // Whether the state has a lower peak than all known states with the same set of steps. Records it
  // if so.
  bool is_better(const State& state) {
    const auto [known, is_new] = best_.try_emplace(state.done, state.peak_bytes);
    if (!is_new && known->second <= state.peak_bytes) return false;
    known->second = state.peak_bytes;
    return true;
  }

  int keep(State state) {
    states_.push_back(std::move(state));
    return static_cast<int>(states_.size()) - 1;
  }

  // Expands the state with the lowest peak first and, of these, the one with the most steps. So the
  // first complete state has the lowest possible peak. nullopt: no order is below the limit, or the
  // effort is spent.
  std::optional<int> best_first() {
    using Entry = std::pair<std::pair<int64_t, size_t>, int>;  // (peak, missing steps), state
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    const auto add = [&](State state) {
      if (!is_better(state)) return;
      const std::pair<int64_t, size_t> rank = {state.peak_bytes, size_ - state.count};
      open.emplace(rank, keep(std::move(state)));
    };
    add(first_state());
    while (!open.empty() && effort_ > 0) {
      const int next = open.top().second;
      open.pop();
      if (states_[at(next)].count == size_) return next;
      if (best_.at(states_[at(next)].done) < states_[at(next)].peak_bytes) continue;
      expand(next, add);
    }
    return std::nullopt;
  }

  // Expands the best states of each number of steps, in ascending order of that number. A state may
  // run several steps more than its parent; it waits until the search reaches its number.
  std::optional<int> beam(int64_t effort) {
    states_.clear();
    best_.clear();
    const auto steps = static_cast<int64_t>(size_);
    const int64_t width = std::min(kBeamWidth, effort / (kBeamEvaluations * steps * steps));
    std::vector<std::vector<int>> by_count(size_ + 1);
    const auto add = [&](State state) {
      if (!is_better(state)) return;
      const size_t count = state.count;
      by_count[count].push_back(keep(std::move(state)));
    };
    add(first_state());
    for (size_t count = 0; count < size_; ++count) {
      std::vector<int>& level = by_count[count];
      std::stable_sort(level.begin(), level.end(), [&](int left, int right) {
        const State& one = states_[at(left)];
        const State& other = states_[at(right)];
        return std::pair(one.peak_bytes, one.live_bytes) <
               std::pair(other.peak_bytes, other.live_bytes);
      });
      if (level.size() > static_cast<size_t>(width)) level.resize(static_cast<size_t>(width));
      for (const int state : level) expand(state, add);
    }
    const std::vector<int>& ends = by_count[size_];
    if (ends.empty()) return std::nullopt;
    return *std::min_element(ends.begin(), ends.end(), [&](int left, int right) {
      return states_[at(left)].peak_bytes < states_[at(right)].peak_bytes;
    });
  }

  std::vector<int> path_to(int last) const {
    std::vector<int> reversed;
    for (int state = last; state >= 0; state = states_[at(state)].parent) {
      const std::vector<int>& steps = states_[at(state)].steps;
      reversed.insert(reversed.end(), steps.rbegin(), steps.rend());
    }
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
  }

  const OrderProblem& problem_;
  const BlockUsers& users_;
  Piece piece_;
  size_t size_;
  int64_t live_before_;
  int64_t enough_ = 0;
  int64_t limit_ = 0;
  int64_t effort_ = 0;
  std::vector<State> states_;
  std::unordered_map<StepSet, int64_t, HashOfSet> best_;  // the lowest known peak by set
};

// Cuts the order after each step that all earlier steps precede and all later steps follow. This is
// true of a step if each earlier step has a user that is not after the step (so a chain of users
// leads to it), and each later step waits for one that is not before the step.
std::vector<Piece> cut(const OrderProblem& problem) {
  const int count = static_cast<int>(problem.steps.size());
  std::vector<int> first_user(at(count), count);
  std::vector<int> last_source(at(count), -1);
  for (int step = 0; step < count; ++step) {
    for (const int source : problem.steps[at(step)].after) {
      first_user[at(source)] = std::min(first_user[at(source)], step);
      last_source[at(step)] = std::max(last_source[at(step)], source);
    }
  }
  std::vector<int> earliest_source(at(count) + 1, count);  // of all steps from an index on
  for (int step = count - 1; step >= 0; --step) {
    earliest_source[at(step)] = std::min(earliest_source[at(step) + 1], last_source[at(step)]);
  }
  std::vector<Piece> pieces;
  int begin = 0;
  int latest_user = 0;
  for (int step = 0; step < count; ++step) {
    const bool is_cut = latest_user <= step && earliest_source[at(step) + 1] >= step;
    latest_user = std::max(latest_user, first_user[at(step)]);
    if (!is_cut && step + 1 < count) continue;
    pieces.push_back({.begin = begin, .end = step + 1});
    begin = step + 1;
  }
  return pieces;
}

// A lower bound for all orders of `piece`: each step needs at least its workspace and its own
// blocks, except outputs that may be in place.
int64_t min_peak(const OrderProblem& problem, const Piece& piece) {
  int64_t least = 0;
  for (int step = piece.begin; step < piece.end; ++step) {
    const OrderStep& run = problem.steps[at(step)];
    int64_t bytes = run.workspace_bytes;
    for (const int block : run.blocks) bytes += problem.block_bytes[at(block)];
    for (const OrderStep::InPlace& pair : run.in_place) bytes -= problem.block_bytes[at(pair.to)];
    least = std::max(least, bytes);
  }
  return least;
}

class Orderer {
 public:
  explicit Orderer(const OrderProblem& problem)
      : problem_(problem), users_(problem), pieces_(cut(problem)) {
    order_.resize(problem.steps.size());
    std::iota(order_.begin(), order_.end(), 0);
    int64_t live = 0;
    for (Piece& piece : pieces_) {
      live_before_.push_back(live);
      for (int step = piece.begin; step < piece.end; ++step) {
        const Effect effect = users_.effect_in_order(step, live);
        piece.peak_bytes = std::max(piece.peak_bytes, effect.peak_bytes);
        live = effect.live_bytes;
      }
    }
  }

  StepOrder run(int64_t effort) {
    bool is_smallest = true;
    while (!pieces_.empty()) {
      const size_t highest = highest_piece();
      const int64_t least = min_peak(problem_, pieces_[highest]);
      is_smallest = pieces_[highest].peak_bytes <= least;
      if (is_smallest || effort <= 0) break;
      // If the blocks of a piece have very many users, even one evaluation of its steps takes too
      // long.
      if (users_.evaluation_cost(pieces_[highest]) > kMaxEvaluationCost) break;
      PieceSearch search(problem_, users_, pieces_[highest], live_before_[highest]);
      const PieceSearch::Result result =
          search.search(pieces_[highest].peak_bytes, std::max(least, next_peak(highest)), effort);
      is_smallest = result.is_exact;
      if (result.order.empty()) break;
      take(highest, result.order);
    }
    return {order_, pieces_.empty() ? 0 : pieces_[highest_piece()].peak_bytes, is_smallest};
  }

 private:
  size_t highest_piece() const {
    const auto highest = std::max_element(
        pieces_.begin(), pieces_.end(),
        [](const Piece& one, const Piece& other) { return one.peak_bytes < other.peak_bytes; });
    return static_cast<size_t>(highest - pieces_.begin());
  }

  // The highest peak that is below that of piece `highest`.
  int64_t next_peak(size_t highest) const {
    int64_t next = 0;
    for (const Piece& piece : pieces_) {
      if (piece.peak_bytes < pieces_[highest].peak_bytes) next = std::max(next, piece.peak_bytes);
    }
    return next;
  }

  void take(size_t index, const std::vector<int>& order) {
    Piece& piece = pieces_[index];
    std::vector<bool> done(at(piece.end - piece.begin), false);
    const auto has_run = [&](int other) {
      if (other < piece.begin) return true;
      return other < piece.end && done[at(other - piece.begin)];
    };
    int64_t live = live_before_[index];
    piece.peak_bytes = 0;
    for (size_t position = 0; position < order.size(); ++position) {
      const int step = order[position];
      const Effect effect = users_.effect(step, live, has_run);
      piece.peak_bytes = std::max(piece.peak_bytes, effect.peak_bytes);
      live = effect.live_bytes;
      done[at(step - piece.begin)] = true;
      order_[at(piece.begin) + position] = step;
    }
  }

  const OrderProblem& problem_;
  BlockUsers users_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> live_before_;  // by piece
  std::vector<int> order_;
};

}  // namespace

StepOrder order_steps(const OrderProblem& problem, const OrderOptions& options) {
  StepOrder order = Orderer(problem).run(options.effort);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(problem, order.steps);
  TESSERA_CHECK(violation.empty(), violation);
  TESSERA_CHECK(order.peak_bytes == peak_of(problem, order.steps), "the peak is that of the order");
#endif
  return order;
}

int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order) {
  constexpr size_t kUnused = std::numeric_limits<size_t>::max();
  std::vector<size_t> first(problem.block_bytes.size(), kUnused);
  std::vector<size_t> last(problem.block_bytes.size(), kUnused);
  for (size_t position = 0; position < order.size(); ++position) {
    for (const int block : problem.steps[at(order[position])].blocks) {
      if (first[at(block)] == kUnused) first[at(block)] = position;
      last[at(block)] = position;
    }
  }
  std::vector<int64_t> changes(order.size() + 1, 0);
  for (size_t block = 0; block < first.size(); ++block) {
    if (first[block] == kUnused) continue;
    changes[first[block]] += problem.block_bytes[block];
    changes[last[block] + 1] -= problem.block_bytes[block];
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (size_t position = 0; position < order.size(); ++position) {
    const OrderStep& step = problem.steps[at(order[position])];
    live += changes[position];
    int64_t shared = 0;
    for (const OrderStep::InPlace& pair : step.in_place) {
      const bool can_share = first[at(pair.to)] == position && last[at(pair.from)] == position;
      if (can_share) shared += problem.block_bytes[at(pair.to)];
    }
    peak = std::max(peak, live - shared + step.workspace_bytes);
  }
  return peak;
}

std::string explain_violation(const OrderProblem& problem, const std::vector<int>& order) {
  if (order.size() != problem.steps.size()) return "the order has not as many steps as there are";
  std::vector<bool> has_run(order.size(), false);
  for (const int step : order) {
    const std::string name = "step " + std::to_string(step);
    if (step < 0 || at(step) >= has_run.size()) return name + " is none";
    if (has_run[at(step)]) return name + " comes twice";
    for (const int source : problem.steps[at(step)].after) {
      if (!has_run[at(source)]) return name + " runs before step " + std::to_string(source);
    }
    has_run[at(step)] = true;
  }
  return "";
}

}  // namespace tessera
