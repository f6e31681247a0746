#include <algorithm>
#include <optional>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "plan/add_waits.h"
#include "plan/arena_blocks.h"
#include "plan/execution_plan.h"
#include "plan/lower_peak.h"
#include "plan/share_in_place.h"
#include "plan/step_builder.h"

namespace tessera {
namespace {

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

// Marks the steps whose output sizes are known only after they have run.
void mark_segment_ends(ExecutionPlan& plan) {
  for (ExecutionStep& step : plan.steps) {
    step.ends_static_segment =
        std::any_of(step.outputs.begin(), step.outputs.end(), [&](const PlanOutput& output) {
          return plan.buffers[at(output.buffer)].kind == PlanBuffer::Kind::Dynamic;
        });
  }
}

ptrdiff_t count_copies(const ExecutionPlan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](const ExecutionStep& step) {
    return step.kind == ExecutionStep::Kind::Copy;
  });
}

// Assigns offsets in the arena. Also tries the order of steps with the lowest peak, and takes it if
// the arena becomes smaller and no more copies are needed.
ExecutionPlan order_and_assign_offsets(ExecutionPlan plan, const Offers& offers) {
  // Another order would mix the memory of several devices, and break up bulks.
  if (uses_devices(plan)) {
    share_in_place(plan, offers);
    assign_offsets(plan);
    return plan;
  }
  const OrderProblem problem = order_problem(plan, offers);
  const StepOrder order = order_steps(problem);
  std::optional<ExecutionPlan> other;
  if (!std::is_sorted(order.steps.begin(), order.steps.end())) {
    other = plan;
    reorder(*other, order.steps);
  }
  share_in_place(plan, offers);
  assign_offsets(plan);
  if (!other) return plan;
  share_in_place(*other, offers);
  if (count_copies(*other) > count_copies(plan)) return plan;
  assign_offsets(*other);
  return other->arena_bytes < plan.arena_bytes ? *std::move(other) : plan;
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
  ExecutionPlan plan = order_and_assign_offsets(builder.take(), offers);
  note_releases(plan);
  mark_segment_ends(plan);
  add_waits(plan);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(plan);
  TESSERA_CHECK(violation.empty(), violation);
  const std::string race = uses_devices(plan) ? explain_race(plan) : "";
  TESSERA_CHECK(race.empty(), race);
#endif
  return plan;
}

}  // namespace tessera
