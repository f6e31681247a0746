#include "base/check.h"
#include "plan/arena_blocks.h"
#include "plan/execution_plan.h"
#include "plan/share_in_place.h"
#include "plan/step_builder.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

void note_releases(ExecutionPlan& plan) {
  std::vector<size_t> last(plan.buffers.size(), 0);
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    for (const int buffer : plan.steps[index].inputs) last[at(buffer)] = index;
    for (const PlanOutput& output : plan.steps[index].outputs) last[at(output.buffer)] = index;
  }
  for (const int buffer : plan.results) last[at(buffer)] = plan.steps.size();
  for (size_t buffer = 0; buffer < last.size(); ++buffer) {
    if (plan.buffers[buffer].kind == PlanBuffer::Kind::Dynamic &&
        last[buffer] < plan.steps.size()) {
      plan.steps[last[buffer]].released.push_back(static_cast<int>(buffer));
    }
  }
}

}  // namespace

std::vector<ValueId> values_between_steps(const Offers& offers, const Placement& placement) {
  std::vector<ValueId> values;
  for (const int index : placement.chosen) {
    for (const CandidateOutput& port : offers.candidates[at(index)].outputs) {
      values.push_back(port.value);
    }
  }
  return values;
}

ExecutionPlan make_plan(const Graph& graph, const Offers& offers, const Placement& placement,
                        const LayoutTable& layouts, std::span<const ValueId> also,
                        const std::vector<std::vector<double>>& conversion_prices) {
  StepBuilder builder(graph, offers, layouts, conversion_prices);
  for (const int index : placement.chosen) builder.add(index);
  for (const ValueId value : graph.outputs) builder.add_result(value);
  for (const ValueId value : graph.kept) builder.add_result(value);
  for (const ValueId value : also) {
    if (builder.is_made(value)) builder.add_result(value);
  }
  ExecutionPlan plan = builder.take();
  share_in_place(plan, offers);
  place_blocks(plan);
  note_releases(plan);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(plan);
  TESSERA_CHECK(violation.empty(), violation);
#endif
  return plan;
}

}  // namespace tessera
