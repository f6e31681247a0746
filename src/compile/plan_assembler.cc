#include "compile/plan_assembler.h"

#include <string>
#include <utility>

#include "tessera/error.h"

namespace tessera {
namespace {

// Indices stay.
void drop_unused(Offers& offers, const Placement& placement) {
  std::vector<bool> is_used(offers.candidates.size(), false);
  for (const int index : placement.chosen) is_used[static_cast<size_t>(index)] = true;
  for (size_t index = 0; index < is_used.size(); ++index) {
    if (!is_used[index]) offers.candidates[index] = {};
  }
}

}  // namespace

std::vector<int> PlanAssembler::build(const Placement& placement, Offers& offers) {
  std::vector<int> failed;
  ThreadPool one(1);
  for (const int index : placement.chosen) {
    if (kernels_.contains(index)) continue;
    const Candidate& candidate = offers.candidates[static_cast<size_t>(index)];
    if (!candidate.has_kernel()) continue;
    std::string reason;
    ThreadPool& its_pool = candidate.threads == 1 ? one : pool_;
    // Libraries on the same thread runtime then build for this pool's threads.
    its_pool.execute([&] {
      try {
        kernels_.emplace(index,
                         std::make_shared<const Kernel>(candidate.build(its_pool.threads())));
      } catch (const Error& error) {
        reason = "its kernel could not be built: " + error.message();
      }
    });
    if (reason.empty()) continue;
    failed.push_back(index);
    for (const NodeId node : candidate.nodes) {
      offers.refusals.push_back({candidate.preference, candidate.backend(), node, reason});
    }
  }
  return failed;
}

BuiltPlan PlanAssembler::lay_out(BuiltPlan base, const Placement& placement,
                                 std::span<const ValueId> also,
                                 const std::vector<std::vector<double>>& conversion_prices) const {
  base.plan = make_plan(base.graph, base.offers, placement, *base.layouts, also, conversion_prices);
  for (const ExecutionStep& step : base.plan.steps) {
    const bool is_kernel = step.kind == ExecutionStep::Kind::Kernel;
    base.kernels.push_back(is_kernel ? kernels_.at(step.candidate) : nullptr);
  }
  drop_unused(base.offers, placement);
  return base;
}

}  // namespace tessera
