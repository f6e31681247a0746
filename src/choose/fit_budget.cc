#include "choose/fit_budget.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "base/containers/at.h"
#include "choose/choice.h"
#include "choose/fit_devices.h"
#include "choose/placement_problem.h"
#include "ops/work.h"
#include "place/solve_placement.h"
#include "plan/arena_blocks.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The solver minimises seconds: this many bytes count as a second.
constexpr double kBytesPerSecond = 1e9;
// Weight of a secondary criterion, which only breaks ties.
constexpr double kLittle = 1e-3;
constexpr uint32_t kInPlace = TESSERA_REQUEST_ADD | TESSERA_REQUEST_IN_PLACE;

bool is_within(const std::vector<NodeId>& nodes, const std::vector<NodeId>& whole) {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    return std::find(whole.begin(), whole.end(), node) != whole.end();
  });
}

bool has_choice(const ChoiceTask& task, const Placement& preferred) {
  try {
    return !choose(task, preferred).placement.chosen.empty();
  } catch (const Error&) {
    // A node has no candidate left.
    return false;
  }
}

// `task` with these oversized candidates.
ChoiceTask with_oversized(const ChoiceTask& task, std::vector<bool> candidates) {
  Constraints constraints = task.constraints();
  constraints.oversized = std::move(candidates);
  return task.with(std::move(constraints));
}

std::string bytes_text(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

BudgetFitter::BudgetFitter(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                           int64_t budget_bytes)
    : graph_(graph),
      offers_(offers),
      layouts_(layouts),
      budget_bytes_(budget_bytes),
      oversized_(offers.candidates.size(), false),
      is_caller_memory_(graph.values.size(), false) {
  if (budget_bytes == 0) return;
  for (const auto* given : {&graph.inputs, &graph.outputs, &graph.kept}) {
    for (const ValueId value : *given) is_caller_memory_[at(value.index)] = true;
  }
  std::vector<bool> is_made_by_view(graph.values.size(), false);
  for (const Candidate& candidate : offers.candidates) {
    if (!candidate.is_view()) continue;
    for (const CandidateOutput& port : candidate.outputs) {
      is_made_by_view[at(port.value.index)] = true;
    }
  }
  for (const Candidate& candidate : offers.candidates) {
    live_bytes_.push_back(live_bytes(candidate, is_made_by_view));
    int64_t kept = 0;
    for (const CandidateInput& port : candidate.inputs) {
      if (!graph[port.value].is_constant()) continue;
      kept = ops::saturating_add(kept, port.pack != nullptr
                                           ? port.pack->bytes
                                           : stored_bytes(graph, layouts, port.value, port.layout));
    }
    weight_bytes_.push_back(kept);
  }
}

int64_t BudgetFitter::kept_bytes(size_t candidate) const {
  return ops::saturating_add(weight_bytes_[candidate], offers_.candidates[candidate].library_bytes);
}

void BudgetFitter::start(const ChoiceTask& task, const Placement& preferred) {
  if (budget_bytes_ == 0) return;
  fitting_ = find_fitting(task, preferred);
  oversized_.assign(offers_.candidates.size(), false);
  rounds_ = 0;
}

bool BudgetFitter::fits(const Placement& placement, const ChoiceTask& task) const {
  if (budget_bytes_ == 0) return true;
  return memory_use(plan_of(placement, task), offers_).total_bytes() <= budget_bytes_;
}

std::optional<Constraints> BudgetFitter::restrict_to_budget(const Placement& placement,
                                                            const ChoiceTask& task,
                                                            const Placement& preferred) {
  std::optional<Constraints> on_devices =
      restrict_to_device_memory(graph_, offers_, layouts_, placement, task.constraints());
  if (on_devices) return on_devices;
  if (budget_bytes_ == 0) return std::nullopt;
  const ExecutionPlan plan = plan_of(placement, task);
  const MemoryUse use = memory_use(plan, offers_);
  if (use.total_bytes() <= budget_bytes_) return std::nullopt;
  note(use);
  ++rounds_;
  const int max_rounds = task.problem().rules.tuning.budget_max_rounds;
  if (rounds_ > max_rounds || !forbid_some(plan, use, task, preferred)) {
    // With conversion prices that were measured since start(), even `fitting_` may need other
    // conversions and exceed the budget.
    if (rounds_ > max_rounds + 1) fail(task);
    rounds_ = max_rounds + 1;
    oversized_.assign(offers_.candidates.size(), true);
    for (const int index : fitting_.chosen) oversized_[at(index)] = false;
  }
  Constraints constraints = task.constraints();
  constraints.oversized = oversized_;
  return constraints;
}

ExecutionPlan BudgetFitter::plan_of(const Placement& placement, const ChoiceTask& task) const {
  return make_plan(graph_, offers_, placement, layouts_, {}, task.conversion_prices());
}

void BudgetFitter::note(const MemoryUse& use) {
  const bool is_smaller = !smallest_ || use.total_bytes() < smallest_->total_bytes();
  if (is_smaller) smallest_ = use;
}

Placement BudgetFitter::find_fitting(const ChoiceTask& task, const Placement& preferred) {
  ChoiceTask restricted = task;
  for (int round = 0; round < task.problem().rules.tuning.budget_max_rounds; ++round) {
    const Placement placement = choose_covering(restricted, offers_, graph_, preferred).placement;
    const ExecutionPlan plan = plan_of(placement, restricted);
    const MemoryUse use = memory_use(plan, offers_);
    note(use);
    if (use.total_bytes() <= budget_bytes_) return placement;
    if (!forbid_some(plan, use, restricted, preferred)) break;
    restricted = with_oversized(restricted, oversized_);
  }
  for (Placement& placement : low_memory_placements(task)) {
    const MemoryUse use = memory_use(plan_of(placement, task), offers_);
    note(use);
    if (use.total_bytes() <= budget_bytes_) return std::move(placement);
  }
  fail(task);
}

// --- Forbidding candidates

// Forbids the candidates with the best ratio of saved bytes to lost time, until the missing bytes
// are saved, except candidates without which there is no choice. Returns whether it forbade any.
bool BudgetFitter::forbid_some(const ExecutionPlan& plan, const MemoryUse& use,
                               const ChoiceTask& task, const Placement& preferred) {
  int64_t missing = use.total_bytes() - budget_bytes_;
  std::vector<Saving> enough;
  for (const Saving& saving : savings(plan, use, task)) {
    if (missing <= 0) break;
    enough.push_back(saving);
    missing -= saving.bytes;
  }
  const auto forbid = [&](std::span<const Saving> some) {
    std::vector<bool> before = oversized_;
    for (const Saving& saving : some) oversized_[at(saving.candidate)] = true;
    if (has_choice(with_oversized(task, oversized_), preferred)) return true;
    oversized_ = std::move(before);
    return false;
  };
  if (enough.empty()) return false;
  if (forbid(enough)) return true;
  bool has_forbidden = false;
  for (const Saving& saving : enough) has_forbidden = forbid({&saving, 1}) || has_forbidden;
  return has_forbidden;
}

std::vector<BudgetFitter::Saving> BudgetFitter::savings(const ExecutionPlan& plan,
                                                        const MemoryUse& use,
                                                        const ChoiceTask& task) const {
  std::vector<int64_t> live(plan.steps.size(), 0);  // by step
  for (const ArenaBlock& block : arena_blocks(plan)) {
    if (block.device != kHostDevice) continue;  // the budget is for the host's memory
    for (int step = block.lower; step < block.upper; ++step) live[at(step)] += block.bytes;
  }
  // The arena size that would fit if all other memory stayed the same.
  const int64_t room = budget_bytes_ - (use.total_bytes() - use.arena_bytes);
  const int64_t peak = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  std::vector<Saving> found;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    if (plan.steps[index].kind != ExecutionStep::Kind::Kernel) continue;
    const bool is_at_peak = live[index] == peak && peak > room;
    const std::optional<Saving> saving = saving_of(plan.steps[index].candidate, is_at_peak, task);
    if (saving) found.push_back(*saving);
  }
  std::sort(found.begin(), found.end(), [](const Saving& left, const Saving& right) {
    const double left_price = left.seconds / static_cast<double>(left.bytes);
    const double right_price = right.seconds / static_cast<double>(right.bytes);
    return std::tuple(left_price, right.bytes, left.candidate) <
           std::tuple(right_price, left.bytes, right.candidate);
  });
  return found;
}

// The saving if the candidates that need the least memory for its nodes replace `candidate`.
// nullopt if they need no less, or if a node has no other candidate.
std::optional<BudgetFitter::Saving> BudgetFitter::saving_of(int candidate, bool is_at_peak,
                                                            const ChoiceTask& task) const {
  const std::vector<bool>& is_forbidden = task.forbidden();
  const Candidate& own = offers_.candidates[at(candidate)];
  const auto live = [&](int index) { return is_at_peak ? live_bytes_[at(index)] : 0; };
  int64_t kept = 0;
  int64_t max_live = 0;
  double seconds = -task.candidate_seconds(candidate);
  for (const NodeId node : own.nodes) {
    int best = -1;
    for (size_t index = 0; index < offers_.candidates.size(); ++index) {
      const Candidate& other = offers_.candidates[index];
      const int number = static_cast<int>(index);
      if (number == candidate || is_forbidden[index] || !is_within({node}, other.nodes)) continue;
      if (!is_within(other.nodes, own.nodes)) continue;
      const bool is_leaner =
          best < 0 || kept_bytes(index) + live(number) < kept_bytes(at(best)) + live(best);
      if (is_leaner) best = number;
    }
    if (best < 0) return std::nullopt;
    // A candidate that covers several of the nodes counts once, at its first node.
    if (offers_.candidates[at(best)].nodes.front() != node) continue;
    kept = ops::saturating_add(kept, kept_bytes(at(best)));
    max_live = std::max(max_live, live(best));
    seconds += task.candidate_seconds(best);
  }
  const int64_t bytes = kept_bytes(at(candidate)) + live(candidate) - kept - max_live;
  if (bytes <= 0) return std::nullopt;
  return Saving{.candidate = candidate, .bytes = bytes, .seconds = std::max(seconds, 0.0)};
}

// --- Minimum memory

// A lower bound of the arena bytes that are live while `candidate` runs. Views need no memory of
// their own, and a value that a view produces may share memory that is already counted.
int64_t BudgetFitter::live_bytes(const Candidate& candidate,
                                 const std::vector<bool>& is_made_by_view) const {
  if (!candidate.has_kernel()) return 0;
  const auto counts = [&](ValueId value) {
    return !is_caller_memory_[at(value.index)] && !graph_[value].is_constant();
  };
  int64_t live = candidate.workspace_bytes;
  std::vector<ValueId> seen;
  for (const CandidateInput& port : candidate.inputs) {
    const bool is_new = std::find(seen.begin(), seen.end(), port.value) == seen.end();
    if (!is_new || !counts(port.value) || is_made_by_view[at(port.value.index)]) {
      continue;
    }
    seen.push_back(port.value);
    live = ops::saturating_add(live, stored_bytes(graph_, layouts_, port.value, port.layout));
  }
  for (const CandidateOutput& port : candidate.outputs) {
    if (!counts(port.value) || (port.requests & kInPlace) != 0) continue;
    live = ops::saturating_add(live, stored_bytes(graph_, layouts_, port.value, port.layout));
  }
  return live;
}

// Returns placements that minimise bytes instead of seconds: kept plus live bytes of all
// candidates; kept bytes, and live bytes, of candidates whose live bytes do not exceed `most`, the
// largest of the nodes' minimum live bytes; and kept bytes of all candidates.
std::vector<Placement> BudgetFitter::low_memory_placements(const ChoiceTask& task) const {
  PlacementProblem problem = task.placement_problem();
  std::vector<int64_t> least(graph_.nodes.size(), std::numeric_limits<int64_t>::max());
  for (size_t index = 0; index < offers_.candidates.size(); ++index) {
    if (problem.is_forbidden[index]) continue;
    for (const NodeId node : offers_.candidates[index].nodes) {
      least[at(node.index)] = std::min(least[at(node.index)], live_bytes_[index]);
    }
  }
  const int64_t most = least.empty() ? 0 : *std::max_element(least.begin(), least.end());
  problem.conversion_prices.clear();
  problem.copy_seconds.clear();
  for (size_t value = 0; value < graph_.values.size(); ++value) {
    const int64_t bytes = type_bytes(graph_.values[value].type).value_or(0);
    problem.conversion_seconds[value] = (1 + static_cast<double>(bytes)) / kBytesPerSecond;
  }
  const auto solved = [&](double kept_part, double live_part, bool is_limited) {
    PlacementProblem lean = problem;
    for (size_t index = 0; index < lean.candidates.size(); ++index) {
      lean.candidates[index].seconds = (kept_part * static_cast<double>(kept_bytes(index)) +
                                        live_part * static_cast<double>(live_bytes_[index])) /
                                       kBytesPerSecond;
      if (is_limited && live_bytes_[index] > most) lean.is_forbidden[index] = true;
    }
    return solve_placement(lean).placement;
  };
  std::vector<Placement> found;
  for (Placement& placement :
       std::vector<Placement>{solved(1, 1, false), solved(1, kLittle, true),
                              solved(kLittle, 1, true), solved(1, kLittle, false)}) {
    if (!placement.chosen.empty()) found.push_back(std::move(placement));
  }
  return found;
}

// A lower bound of the memory of every plan: its outputs; for each node the fewest kept bytes of a
// candidate, where a group's bytes are divided among its nodes; and the largest of the nodes'
// minimum live bytes.
int64_t BudgetFitter::min_bytes(const ChoiceTask& task) const {
  const PlacementProblem& problem = task.placement_problem();
  std::vector<int> readers(graph_.values.size(), 0);  // by value; shared constants have several
  for (const Node& node : graph_.nodes) {
    for (const ValueId value : node.inputs) {
      if (!value.is_none()) ++readers[at(value.index)];
    }
  }
  constexpr int64_t kNoStep = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> kept(graph_.nodes.size(), kNoStep);
  std::vector<int64_t> live(graph_.nodes.size(), kNoStep);
  for (size_t index = 0; index < offers_.candidates.size(); ++index) {
    if (problem.is_forbidden[index]) continue;
    const Candidate& candidate = offers_.candidates[index];
    bool is_shared = false;
    for (const CandidateInput& port : candidate.inputs) {
      const bool is_constant = graph_[port.value].is_constant();
      is_shared = is_shared || (is_constant && readers[at(port.value.index)] > 1);
    }
    const auto nodes = static_cast<int64_t>(candidate.nodes.size());
    const int64_t own = is_shared ? 0 : kept_bytes(index) / nodes;
    for (const NodeId node : candidate.nodes) {
      kept[at(node.index)] = std::min(kept[at(node.index)], own);
      live[at(node.index)] = std::min(live[at(node.index)], live_bytes_[index]);
    }
  }
  int64_t max_live = 0;
  int64_t total = smallest_->output_bytes;
  for (size_t node = 0; node < kept.size(); ++node) {
    if (kept[node] == kNoStep) continue;
    total = ops::saturating_add(total, kept[node]);
    max_live = std::max(max_live, live[node]);
  }
  return ops::saturating_add(total, max_live);
}

void BudgetFitter::fail(const ChoiceTask& task) const {
  const int64_t found = smallest_->total_bytes();
  const bool is_least = found <= min_bytes(with_oversized(task, {}));
  throw Error(ErrorKind::OutOfMemory, "memory budget",
              "expected a plan of at most " + bytes_text(budget_bytes_) +
                  ", found none; the smallest that was found takes " + bytes_text(found) +
                  (is_least ? ", and none is smaller" : ", which is not proven to be the least") +
                  ": " + bytes_text(smallest_->arena_bytes) +
                  " for intermediate values and workspaces, " +
                  bytes_text(smallest_->output_bytes) + " for outputs, " +
                  bytes_text(smallest_->weight_bytes) + " of weights, " +
                  bytes_text(smallest_->library_bytes) + " of libraries");
}

}  // namespace tessera
