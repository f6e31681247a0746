#include "choose/fit_devices.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "choose/placement_problem.h"
#include "ops/work.h"
#include "plan/execution_plan.h"

namespace tessera {
namespace {

// The sizes of the workspace, the constants and the results of a candidate.
std::vector<int64_t> sizes_of(const Candidate& candidate, const Graph& graph,
                              const LayoutTable& layouts) {
  std::vector<int64_t> sizes = {candidate.workspace_bytes};
  for (const CandidateInput& port : candidate.inputs) {
    if (!graph[port.value].is_constant()) continue;
    sizes.push_back(port.pack != nullptr ? port.pack->bytes
                                         : stored_bytes(graph, layouts, port.value, port.layout));
  }
  for (const CandidateOutput& port : candidate.outputs) {
    sizes.push_back(stored_bytes(graph, layouts, port.value, port.layout));
  }
  return sizes;
}

// An upper bound of the bytes that the device saves without the candidate.
int64_t bytes_of(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts) {
  int64_t bytes = 0;
  for (const int64_t size : sizes_of(candidate, graph, layouts)) {
    bytes = ops::saturating_add(bytes, size);
  }
  return bytes;
}

// Whether a tensor of the candidate is larger than the largest block that its device allocates.
bool is_too_large(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts) {
  const int64_t most = layouts.device(candidate.device).max_allocation_bytes();
  return most > 0 && std::ranges::max(sizes_of(candidate, graph, layouts)) > most;
}

// Returns by how many bytes the plan exceeds the memory of `device`, or its arena exceeds the
// largest block that the device allocates; 0 or less if the plan fits.
int64_t excess_on(const ExecutionPlan& plan, const LayoutTable& layouts, DeviceId device) {
  const int64_t available = layouts.device(device).memory_bytes();
  const int64_t most = layouts.device(device).max_allocation_bytes();
  const int64_t arena = plan.device_arenas[static_cast<size_t>(device.index - 1)].bytes;
  const int64_t excess_of_arena = most > 0 ? arena - most : 0;
  if (available <= 0) return excess_of_arena;
  int64_t needed = arena;
  for (const PlanConstant& constant : plan.constants) {
    if (constant.device != device) continue;
    needed = ops::saturating_add(needed, constant.bytes);
  }
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool is_of_caller = buffer.owner < 0 && (buffer.kind == PlanBuffer::Kind::Input ||
                                                   buffer.kind == PlanBuffer::Kind::Output);
    if (is_of_caller && buffer.device == device) needed = ops::saturating_add(needed, buffer.bytes);
  }
  return std::max(needed - available, excess_of_arena);
}

}  // namespace

std::optional<Constraints> restrict_to_device_memory(const Graph& graph, const Offers& offers,
                                                     const LayoutTable& layouts,
                                                     const Placement& placement,
                                                     const Constraints& constraints) {
  const auto device_of = [&](int index) {
    return offers.candidates[static_cast<size_t>(index)].device;
  };
  const bool uses_devices = std::ranges::any_of(
      placement.chosen, [&](int index) { return device_of(index) != kHostDevice; });
  if (!uses_devices) return std::nullopt;
  const ExecutionPlan plan = make_plan(graph, offers, placement, layouts, {});
  std::vector<int> failed;
  for (size_t index = 1; index < layouts.device_count(); ++index) {
    const DeviceId device{static_cast<int32_t>(index)};
    int64_t excess = excess_on(plan, layouts, device);
    for (const int chosen : placement.chosen) {
      const Candidate& candidate = offers.candidates[static_cast<size_t>(chosen)];
      if (candidate.device != device || !is_too_large(candidate, graph, layouts)) continue;
      failed.push_back(chosen);
      excess -= bytes_of(candidate, graph, layouts);
    }
    if (excess <= 0) continue;
    std::vector<std::pair<int64_t, int>> largest;
    for (const int chosen : placement.chosen) {
      if (device_of(chosen) != device) continue;
      const Candidate& candidate = offers.candidates[static_cast<size_t>(chosen)];
      largest.emplace_back(bytes_of(candidate, graph, layouts), chosen);
    }
    std::ranges::sort(largest, std::greater());
    for (const auto& [bytes, candidate] : largest) {
      failed.push_back(candidate);
      excess -= bytes;
      if (excess <= 0) break;
    }
  }
  if (failed.empty()) return std::nullopt;
  return with_failed(constraints, failed, offers.candidates.size());
}

}  // namespace tessera
