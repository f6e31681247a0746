#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "plan/execution_plan.h"
#include "plan/memory_plan.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// Makes the steps with a buffer of its own for every value in every layout.
class StepBuilder {
 public:
  StepBuilder(const Graph& graph, const Offers& offers, const LayoutTable& layouts)
      : graph_(graph), offers_(offers), layouts_(layouts), present_(graph.values.size()) {
    for (size_t index = 0; index < graph.inputs.size(); ++index) {
      const int buffer = add_buffer(PlanBuffer::Kind::Input, graph.inputs[index], kDefaultLayout);
      plan_.buffers[at(buffer)].index = static_cast<int>(index);
      note(graph.inputs[index], kDefaultLayout, buffer);
    }
  }

  void add_kernel(int index) {
    const Candidate& candidate = offers_.candidates[at(index)];
    ExecutionStep step;
    step.candidate = index;
    step.workspace_bytes = candidate.workspace_bytes;
    step.threads = candidate.threads;
    for (const CandidateInput& port : candidate.inputs) {
      step.inputs.push_back(graph_[port.value].is_constant() ? constant(port, index)
                                                             : obtain(port.value, port.layout));
    }
    for (const CandidateOutput& port : candidate.outputs) {
      const auto kind = port.is_size_unknown ? PlanBuffer::Kind::Dynamic : PlanBuffer::Kind::Arena;
      const int buffer = add_buffer(kind, port.value, port.layout);
      note(port.value, port.layout, buffer);
      step.outputs.push_back({buffer, TESSERA_REQUEST_WRITE});
    }
    if ((candidate.flags & TESSERA_CANDIDATE_VIEW) != 0) {
      // Until values may share memory beyond in-place pairs, a view is a copy of its first input.
      step.kind = ExecutionStep::Kind::Copy;
      step.workspace_bytes = 0;
      step.inputs.resize(1);
    }
    plan_.steps.push_back(std::move(step));
  }

  void add_result(ValueId value) {
    const int buffer = graph_[value].is_constant()
                           ? constant({.value = value, .layout = kDefaultLayout}, -1)
                           : obtain(value, kDefaultLayout);
    PlanBuffer& result = plan_.buffers[at(buffer)];
    if (result.kind == PlanBuffer::Kind::Arena) result.kind = PlanBuffer::Kind::Output;
    plan_.results.push_back(buffer);
  }

  bool is_made(ValueId value) const { return !present_[at(value.index)].empty(); }

  ExecutionPlan take() { return std::move(plan_); }

 private:
  int add_buffer(PlanBuffer::Kind kind, ValueId value, LayoutId layout) {
    PlanBuffer buffer{.kind = kind, .value = value, .layout = layout};
    if (kind != PlanBuffer::Kind::Dynamic) buffer.type = known_type(graph_[value].type);
    if (buffer.type) {
      const std::optional<int64_t> bytes = layouts_.storage_bytes(layout, *buffer.type);
      TESSERA_CHECK(bytes.has_value(), "candidates were checked against what layouts hold");
      buffer.bytes = *bytes;
    }
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void note(ValueId value, LayoutId layout, int buffer) {
    present_[at(value.index)].emplace_back(layout, buffer);
  }

  // The buffer that has `value` in `layout`, after the conversions that make it.
  int obtain(ValueId value, LayoutId layout) {
    auto& present = present_[at(value.index)];
    TESSERA_CHECK(!present.empty(), "a placement's order makes values before they are read");
    for (const auto& [known, buffer] : present) {
      if (known == layout) return buffer;
    }
    const TensorType type = *plan_.buffers[at(present[0].second)].type;
    std::vector<ConversionStep> best;
    for (const auto& [known, buffer] : present) {
      std::vector<ConversionStep> route = layouts_.route(known, layout, type);
      if (best.empty() || route.size() < best.size()) best = std::move(route);
    }
    int from = 0;
    for (const auto& [known, buffer] : present) {
      if (known == best.front().from) from = buffer;
    }
    for (const ConversionStep& conversion : best) {
      const int to = add_buffer(PlanBuffer::Kind::Arena, value, conversion.to);
      ExecutionStep step;
      step.kind = ExecutionStep::Kind::Convert;
      step.conversion = conversion;
      step.inputs = {from};
      step.outputs = {{to, TESSERA_REQUEST_WRITE}};
      plan_.steps.push_back(std::move(step));
      note(value, conversion.to, to);
      from = to;
    }
    return from;
  }

  int constant(const CandidateInput& port, int candidate) {
    const std::string pack_id = port.pack == nullptr ? ""
                                                     : offers_.candidates[at(candidate)].backend() +
                                                           "/" + std::string(port.pack->id);
    const auto key = std::tuple(port.value, port.layout, pack_id);
    const auto found = constants_.find(key);
    if (found != constants_.end()) return found->second;
    const int buffer = add_buffer(PlanBuffer::Kind::Constant, port.value, port.layout);
    PlanBuffer& made = plan_.buffers[at(buffer)];
    made.index = static_cast<int>(plan_.constants.size());
    if (port.pack != nullptr) made.bytes = port.pack->bytes;
    plan_.constants.push_back({port.value, port.layout, port.pack, candidate, made.bytes});
    constants_[key] = buffer;
    return buffer;
  }

  const Graph& graph_;
  const Offers& offers_;
  const LayoutTable& layouts_;
  ExecutionPlan plan_;
  std::vector<std::vector<std::pair<LayoutId, int>>> present_;  // by value: layout, buffer
  std::map<std::tuple<ValueId, LayoutId, std::string>, int> constants_;
};

// Decides which buffers share memory because a kernel writes its output over an input.
class InPlaceMerger {
 public:
  InPlaceMerger(ExecutionPlan& plan, const Offers& offers)
      : plan_(plan), offers_(offers), storage_(plan.buffers.size()) {
    for (size_t index = 0; index < storage_.size(); ++index) {
      storage_[index] = static_cast<int>(index);
    }
    count_last_uses();
  }

  // For each buffer the buffer whose memory it uses: itself for most.
  std::vector<int> merge() {
    std::vector<ExecutionStep> steps;
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      ExecutionStep& step = plan_.steps[index];
      if (step.kind == ExecutionStep::Kind::Kernel) merge_step(index, step, steps);
      steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
    return std::move(storage_);
  }

 private:
  void count_last_uses() {
    last_use_.assign(plan_.buffers.size(), 0);
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      for (const int buffer : plan_.steps[index].inputs) last_use_[at(buffer)] = index;
      for (const PlanOutput& output : plan_.steps[index].outputs) {
        last_use_[at(output.buffer)] = index;
      }
    }
    for (const int buffer : plan_.results) last_use_[at(buffer)] = plan_.steps.size();
  }

  // Whether the memory of input `port` is free for an output once step `index` has read it.
  bool may_overwrite(size_t index, const ExecutionStep& step, int port, int output) const {
    const PlanBuffer& from = plan_.buffers[at(step.inputs[at(port)])];
    const PlanBuffer& to = plan_.buffers[at(output)];
    if (from.kind != PlanBuffer::Kind::Arena || to.kind != PlanBuffer::Kind::Arena) return false;
    if (from.bytes != to.bytes) return false;
    const int memory = storage_[at(step.inputs[at(port)])];
    for (size_t buffer = 0; buffer < storage_.size(); ++buffer) {
      if (storage_[buffer] == memory && last_use_[buffer] > index) return false;
    }
    for (size_t other = 0; other < step.inputs.size(); ++other) {
      if (static_cast<int>(other) != port && storage_[at(step.inputs[other])] == memory) {
        return false;
      }
    }
    return std::none_of(step.outputs.begin(), step.outputs.end(), [&](const PlanOutput& taken) {
      return storage_[at(taken.buffer)] == memory;
    });
  }

  void merge_step(size_t index, ExecutionStep& step, std::vector<ExecutionStep>& steps) {
    const Candidate& candidate = offers_.candidates[at(step.candidate)];
    for (size_t position = 0; position < step.outputs.size(); ++position) {
      const CandidateOutput& port = candidate.outputs[position];
      PlanOutput& output = step.outputs[position];
      const bool adds = (port.requests & TESSERA_REQUEST_ADD) != 0;
      const bool may_be_in_place = (port.requests & TESSERA_REQUEST_IN_PLACE) != 0;
      if (!adds && !may_be_in_place) continue;
      const int source = step.inputs[at(port.in_place_input)];
      const bool is_shared = may_overwrite(index, step, port.in_place_input, output.buffer);
      if (is_shared) storage_[at(output.buffer)] = storage_[at(source)];
      if (adds) {
        output.request = TESSERA_REQUEST_ADD;
        if (!is_shared) steps.push_back(copy_step(source, output.buffer));
      } else if (is_shared) {
        output.request = TESSERA_REQUEST_IN_PLACE;
      }
    }
  }

  static ExecutionStep copy_step(int from, int to) {
    ExecutionStep step;
    step.kind = ExecutionStep::Kind::Copy;
    step.inputs = {from};
    step.outputs = {{to, TESSERA_REQUEST_WRITE}};
    return step;
  }

  ExecutionPlan& plan_;
  const Offers& offers_;
  std::vector<int> storage_;
  std::vector<size_t> last_use_;  // by buffer: a step, or one past the last
};

void place_buffers(ExecutionPlan& plan, const std::vector<int>& storage) {
  std::map<int, size_t> request_of;  // by storage
  std::vector<BufferRequest> requests;
  const auto use = [&](int buffer, int step) {
    if (plan.buffers[at(buffer)].kind != PlanBuffer::Kind::Arena) return;
    const auto [entry, is_new] = request_of.emplace(storage[at(buffer)], requests.size());
    if (is_new) {
      requests.push_back({.first_step = step,
                          .last_step = step,
                          .bytes = plan.buffers[at(buffer)].bytes,
                          .align = TESSERA_ALIGNMENT_BYTES});
    }
    requests[entry->second].last_step = step;
  };
  std::vector<std::pair<size_t, size_t>> workspaces;  // step, request
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const int step = static_cast<int>(index);
    for (const int buffer : plan.steps[index].inputs) use(buffer, step);
    for (const PlanOutput& output : plan.steps[index].outputs) use(output.buffer, step);
    if (plan.steps[index].workspace_bytes == 0) continue;
    workspaces.emplace_back(index, requests.size());
    requests.push_back({.first_step = step,
                        .last_step = step,
                        .bytes = plan.steps[index].workspace_bytes,
                        .align = TESSERA_ALIGNMENT_BYTES});
  }
  const MemoryPlan memory = plan_memory(requests);
#ifdef TESSERA_CHECKS
  TESSERA_CHECK(explain_violation(requests, memory).empty(), "the memory plan is sound");
#endif
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const auto found = request_of.find(storage[index]);
    if (plan.buffers[index].kind == PlanBuffer::Kind::Arena && found != request_of.end()) {
      plan.buffers[index].offset = memory.offsets[found->second];
    }
  }
  for (const auto& [step, request] : workspaces) {
    plan.steps[step].workspace_offset = memory.offsets[request];
  }
  plan.arena_bytes = memory.arena_bytes;
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
                        const LayoutTable& layouts, std::span<const ValueId> also) {
  StepBuilder builder(graph, offers, layouts);
  for (const int index : placement.chosen) builder.add_kernel(index);
  for (const ValueId value : graph.outputs) builder.add_result(value);
  for (const ValueId value : graph.kept) builder.add_result(value);
  for (const ValueId value : also) {
    if (builder.is_made(value)) builder.add_result(value);
  }
  ExecutionPlan plan = builder.take();
  const std::vector<int> storage = InPlaceMerger(plan, offers).merge();
  place_buffers(plan, storage);
  note_releases(plan);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(plan);
  TESSERA_CHECK(violation.empty(), violation.c_str());
#endif
  return plan;
}

}  // namespace tessera
