#include <map>
#include <utility>

#include "base/check.h"
#include "plan/execution_plan.h"
#include "plan/memory_plan.h"
#include "plan/share_in_place.h"
#include "plan/shared_memory.h"
#include "plan/step_builder.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

void place_buffers(ExecutionPlan& plan) {
  std::map<int, size_t> request_of;  // by owner
  std::vector<BufferRequest> requests;
  const auto use = [&](int buffer, int step) {
    if (plan.buffers[at(buffer)].kind != PlanBuffer::Kind::Arena) return;
    const int owner = owner_of(plan, buffer);
    const auto [entry, is_new] = request_of.emplace(owner, requests.size());
    if (is_new) {
      requests.push_back({.lower = step, .bytes = plan.buffers[at(owner)].bytes});
    }
    requests[entry->second].upper = step + 1;
  };
  std::vector<std::pair<size_t, size_t>> workspaces;  // step, request
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const int step = static_cast<int>(index);
    for (const int buffer : plan.steps[index].inputs) use(buffer, step);
    for (const PlanOutput& output : plan.steps[index].outputs) use(output.buffer, step);
    if (plan.steps[index].workspace_bytes == 0) continue;
    workspaces.emplace_back(index, requests.size());
    requests.push_back(
        {.lower = step, .upper = step + 1, .bytes = plan.steps[index].workspace_bytes});
  }
  const MemoryPlan memory = plan_memory(requests, {.alignment = TESSERA_ALIGNMENT_BYTES});
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(requests, memory, TESSERA_ALIGNMENT_BYTES);
  TESSERA_CHECK(violation.empty(), violation);
#endif
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const auto found = request_of.find(owner_of(plan, static_cast<int>(index)));
    if (plan.buffers[index].kind == PlanBuffer::Kind::Arena && found != request_of.end()) {
      plan.buffers[index].offset += memory.offsets[found->second];
    }
  }
  for (const auto& [step, request] : workspaces) {
    plan.steps[step].workspace_offset = memory.offsets[request];
  }
  plan.arena_bytes = memory.arena_bytes;
  plan.lower_bound_bytes = memory.lower_bound_bytes;
  plan.is_smallest_arena = memory.is_smallest;
}

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
  place_buffers(plan);
  note_releases(plan);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(plan);
  TESSERA_CHECK(violation.empty(), violation);
#endif
  return plan;
}

}  // namespace tessera
