#include "choose/choice_problem.h"

#include <algorithm>
#include <utility>

#include "base/containers/at.h"
#include "choose/placement_problem.h"

namespace tessera {

ChoiceProblem make_choice_problem(const Graph& graph, const Offers& offers,
                                  const LayoutTable& layouts, const ChoiceRules& rules) {
  ChoiceProblem problem{.placement_problem = make_problem(graph, offers, layouts, rules.tuning),
                        .node_locations = node_locations(graph),
                        .rules = rules};
  if (rules.follows_order) {
    for (PlacementCandidate& candidate : problem.placement_problem.candidates)
      candidate.is_one_pass = false;
  }
  const bool has_others = std::ranges::any_of(offers.candidates, [](const Candidate& candidate) {
    return candidate.threads == 0 && candidate.has_kernel();
  });
  for (const Candidate& candidate : offers.candidates) {
    problem.is_single_threaded.push_back(has_others && candidate.threads == 1);
    problem.is_measured_only.push_back(candidate.is_measured_only());
    problem.compile_seconds.push_back(candidate.is_to_compile() ? candidate.build_seconds : 0);
  }
  return problem;
}

Constraints with_failed(Constraints constraints, const std::vector<int>& candidates, size_t count) {
  constraints.failed.resize(count, false);
  for (const int index : candidates) constraints.failed[at(index)] = true;
  return constraints;
}

ChoiceTask::ChoiceTask(const ChoiceProblem& problem, std::optional<ChoicePrices> prices,
                       Constraints constraints)
    : problem_(&problem),
      prices_(std::move(prices)),
      constraints_(std::move(constraints)),
      is_forbidden_(find_forbidden()),
      placement_problem_(problem.placement_problem) {
  if (prices_) {
    for (size_t index = 0; index < placement_problem_.candidates.size(); ++index) {
      placement_problem_.candidates[index].seconds = prices_->seconds[index];
    }
    placement_problem_.conversion_prices = prices_->conversions;
    placement_problem_.results = prices_->results;
  }
  placement_problem_.is_forbidden = is_forbidden_;
  placement_problem_.is_forbidden =
      choose_storage(placement_problem_, problem.rules.keeps_sparse_storage);
}

std::vector<bool> ChoiceTask::find_forbidden() const {
  const size_t count = problem_->placement_problem.candidates.size();
  std::vector<bool> is_forbidden(count, false);
  for (size_t index = 0; index < count; ++index) {
    const auto is_in = [&](const std::vector<bool>& some) { return !some.empty() && some[index]; };
    const bool needs_price = problem_->is_measured_only[index] ||
                             (!problem_->rules.may_compile && problem_->compile_seconds[index] > 0);
    is_forbidden[index] = (prices_ ? prices_->is_refused[index] : needs_price) ||
                          is_in(constraints_.failed) || is_in(constraints_.excluded) ||
                          is_in(constraints_.oversized);
  }
  return is_forbidden;
}

}  // namespace tessera
