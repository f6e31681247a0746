#include "plan/step_builder.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/containers/at.h"
#include "base/errors/check.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// The requirements of copies and joint values, and of views.
constexpr PortRequirements kAnything{.alignment_bytes = 1, .accepts_strides = true};
constexpr PortRequirements kDense{.alignment_bytes = 1, .accepts_strides = false};

}  // namespace

StepBuilder::StepBuilder(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                         const std::vector<std::vector<double>>& conversion_prices)
    : graph_(graph),
      offers_(offers),
      layouts_(layouts),
      conversion_prices_(conversion_prices),
      present_(graph.values.size()),
      users_(plan_, offers) {
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const LayoutId layout = layouts.io_layout(graph[graph.inputs[index]]);
    const int buffer = add_buffer(Kind::Input, graph.inputs[index], layout);
    plan_.buffers[at(buffer)].index = static_cast<int>(index);
    note(graph.inputs[index], layout, buffer);
  }
}

void StepBuilder::add(int candidate) {
  const Candidate& added = offers_.candidates[at(candidate)];
  if (added.is_view()) return add_view(candidate);
  if (added.is_joint()) return add_joint(candidate);
  add_kernel(candidate);
}

void StepBuilder::add_kernel(int index) {
  const Candidate& candidate = offers_.candidates[at(index)];
  ExecutionStep step;
  if (candidate.runs_on_values) step.kind = ExecutionStep::Kind::Values;
  step.device = candidate.device;
  step.candidate = index;
  step.workspace_bytes = candidate.workspace_bytes;
  step.threads = candidate.threads;
  for (const CandidateInput& port : candidate.inputs) {
    step.inputs.push_back(
        graph_[port.value].is_constant()
            ? constant(port, index)
            : obtain(port.value, port.layout, {port.alignment_bytes, port.accepts_strides}));
  }
  for (const CandidateOutput& port : candidate.outputs) {
    const auto kind = port.is_size_unknown ? Kind::Dynamic : Kind::Arena;
    const int buffer = add_buffer(kind, port.value, port.layout);
    note(port.value, port.layout, buffer);
    step.outputs.push_back({buffer, TESSERA_REQUEST_WRITE});
  }
  add_step(std::move(step));
}

void StepBuilder::add_view(int index) {
  const Candidate& candidate = offers_.candidates[at(index)];
  const CandidateInput& port = candidate.inputs[0];
  ExecutionStep step;
  step.kind = ExecutionStep::Kind::View;
  step.candidate = index;
  // The parts of a view are defined by their positions in dense storage.
  const int whole = graph_[port.value].is_constant() ? constant(port, index)
                                                     : obtain(port.value, port.layout, kDense);
  step.inputs.push_back(whole);
  for (const CandidateOutput& output : candidate.outputs) {
    const int buffer = add_part(whole, output.value, output.layout, output.part);
    note(output.value, output.layout, buffer);
    step.outputs.push_back({buffer, TESSERA_REQUEST_WRITE});
    step.parts.push_back(output.part);
  }
  add_step(std::move(step));
}

void StepBuilder::add_joint(int index) {
  const Candidate& candidate = offers_.candidates[at(index)];
  ExecutionStep step;
  step.kind = ExecutionStep::Kind::View;
  step.candidate = index;
  for (const CandidateInput& port : candidate.inputs) {
    step.inputs.push_back(graph_[port.value].is_constant()
                              ? constant(port, index)
                              : obtain(port.value, port.layout, kAnything));
    step.parts.push_back(port.part);
  }
  const CandidateOutput& output = candidate.outputs[0];
  const int whole = add_buffer(Kind::Arena, output.value, output.layout);
  const std::vector<bool> is_in_place = allocate_parts(candidate, step.inputs, whole);
  for (size_t position = 0; position < step.inputs.size(); ++position) {
    if (is_in_place[position]) continue;
    const CandidateInput& port = candidate.inputs[position];
    const int part = add_part(whole, port.value, port.layout, port.part);
    ExecutionStep copy;
    copy.kind = ExecutionStep::Kind::Copy;
    copy.device = candidate.device;
    copy.inputs = {step.inputs[position]};
    copy.outputs = {{part, TESSERA_REQUEST_WRITE}};
    add_step(std::move(copy));
    step.inputs[position] = part;
  }
  note(output.value, output.layout, whole);
  step.outputs.push_back({whole, TESSERA_REQUEST_WRITE});
  add_step(std::move(step));
}

// Moves inputs of a joint candidate into the memory of its output `whole`, so that they need not be
// copied. The memory of an owner moves as a unit. It moves if the inputs of the candidate fill it
// completely and are at the same distances from each other in `whole`. So a joint value moves into
// a larger joint value together with all its parts. Returns for each input whether it is at its
// position in `whole`.
std::vector<bool> StepBuilder::allocate_parts(const Candidate& candidate,
                                              const std::vector<int>& inputs, int whole) {
  std::vector<bool> is_placed(inputs.size(), false);
  std::map<int, std::vector<size_t>> inputs_of;  // by owner of their memory
  for (size_t position = 0; position < inputs.size(); ++position) {
    inputs_of[owner_of(plan_, inputs[position])].push_back(position);
  }
  for (const auto& [owner, members] : inputs_of) {
    const PlanBuffer& memory = plan_.buffers[at(owner)];
    if (memory.kind != Kind::Arena || memory.bytes == 0) continue;
    std::set<int64_t> shifts;
    int64_t bytes = 0;
    bool is_dense = true;
    for (const size_t position : members) {
      const PlanBuffer& buffer = plan_.buffers[at(inputs[position])];
      const StoragePart& part = candidate.inputs[position].part;
      shifts.insert(part.offset_bytes - buffer.offset);
      bytes += buffer.bytes;
      is_dense = is_dense && part.is_dense() && buffer.strides.empty();
    }
    const int64_t shift = *shifts.begin();
    const bool is_all_of_it = shifts.size() == 1 && shift >= 0 && bytes == memory.bytes;
    if (!is_all_of_it) continue;
    if (is_dense ? !users_.can_move(owner, shift)
                 : members.size() != 1 || !memory.strides.empty() || inputs[members[0]] != owner ||
                       !users_.can_stride(owner, shift)) {
      continue;
    }
    if (!is_dense) plan_.buffers[at(owner)].strides = candidate.inputs[members[0]].part.strides;
    users_.move(owner, whole, shift);
    for (const size_t position : members) is_placed[position] = true;
  }
  return is_placed;
}

void StepBuilder::add_result(ValueId value) {
  const bool is_constant = graph_[value].is_constant();
  const LayoutId layout = layouts_.io_layout(graph_[value]);
  const int buffer = is_constant ? constant({.value = value, .layout = layout}, -1)
                                 : obtain(value, layout, kDense);
  is_result_.resize(plan_.buffers.size(), false);
  const bool is_given_already = is_result_[at(buffer)];
  const int owner = owner_of(plan_, buffer);
  PlanBuffer& memory = plan_.buffers[at(owner)];
  const PlanBuffer& result = plan_.buffers[at(buffer)];
  // The caller keeps the memory of a result, so two results must not share memory, and a result
  // must not be a small part of a larger memory.
  // A constant on a device is copied, because runs that share it must not give it away.
  const bool is_constant_on_device = is_constant && memory.device != kHostDevice;
  const bool is_whole = owner == buffer && memory.kind != Kind::Output && !is_constant_on_device;
  const bool is_all_of_it = memory.kind == Kind::Arena && result.bytes == memory.bytes &&
                            result.offset == 0 &&
                            memory.bytes == tensor_bytes(memory.type->element, memory.type->dims);
  if (is_given_already || is_whole || is_all_of_it) {
    if (memory.kind == Kind::Arena) memory.kind = Kind::Output;
    plan_.results.push_back(buffer);
    is_result_[at(buffer)] = true;
    return;
  }
  const int copy = copied(buffer);
  plan_.buffers[at(copy)].kind = Kind::Output;
  plan_.results.push_back(copy);
  is_result_.resize(plan_.buffers.size(), false);
  is_result_[at(copy)] = true;
}

bool StepBuilder::is_made(ValueId value) const { return !present_[at(value.index)].empty(); }

ExecutionPlan StepBuilder::take() {
  for (size_t device = 1; device < layouts_.device_count(); ++device) {
    const DeviceId id{static_cast<int32_t>(device)};
    plan_.device_arenas.push_back({.alignment_bytes = layouts_.device(id).alignment_bytes()});
  }
  for (PlanBuffer& buffer : plan_.buffers) {
    if (buffer.owner < 0) continue;
    buffer.kind = plan_.buffers[at(buffer.owner)].kind;
    buffer.index = plan_.buffers[at(buffer.owner)].index;
  }
  return std::move(plan_);
}

void StepBuilder::add_step(ExecutionStep step) {
  users_.note_step(step);
  plan_.steps.push_back(std::move(step));
}

int StepBuilder::add_buffer(Kind kind, ValueId value, LayoutId layout) {
  const int made = make_buffer(kind, value, layout);
  users_.note_buffer(made);
  return made;
}

int StepBuilder::make_buffer(Kind kind, ValueId value, LayoutId layout) {
  PlanBuffer buffer{
      .kind = kind, .value = value, .layout = layout, .device = layouts_.device_of(layout)};
  if (kind != Kind::Dynamic) buffer.type = known_type(graph_[value].type);
  if (buffer.type) {
    const std::optional<int64_t> bytes = layouts_.storage_bytes(layout, *buffer.type);
    TESSERA_CHECK(bytes.has_value(), "candidates were checked against what layouts hold");
    buffer.bytes = *bytes;
  }
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int StepBuilder::add_part(int whole, ValueId value, LayoutId layout, const StoragePart& part) {
  const int made = make_buffer(plan_.buffers[at(whole)].kind, value, layout);
  PlanBuffer& buffer = plan_.buffers[at(made)];
  buffer.owner = owner_of(plan_, whole);
  buffer.offset = plan_.buffers[at(whole)].offset + part.offset_bytes;
  buffer.strides = part.strides;
  users_.note_buffer(made);
  return made;
}

void StepBuilder::note(ValueId value, LayoutId layout, int buffer) {
  present_[at(value.index)].emplace_back(layout, buffer);
}

// Returns a buffer with `value` in `layout` that meets `needs`. Adds the conversions or the copy
// that make it if there is none.
int StepBuilder::obtain(ValueId value, LayoutId layout, const PortRequirements& needs) {
  const auto& present = present_[at(value.index)];
  TESSERA_CHECK(!present.empty(), "a placement's order makes values before they are read");
  int unfit = -1;
  for (const auto& [known, buffer] : present) {
    if (known != layout) continue;
    if (meets(plan_.buffers[at(buffer)], needs)) return buffer;
    unfit = buffer;
  }
  return unfit < 0 ? convert(value, layout) : copied(unfit);
}

std::vector<ConversionStep> StepBuilder::way_to(ValueId value, LayoutId layout) const {
  std::vector<ConversionStep> best = cheapest_conversions_to(value, layout);
  if (!best.empty()) return best;
  const auto& present = present_[at(value.index)];
  const TensorType type = *plan_.buffers[at(present[0].second)].type;
  for (const auto& [known, buffer] : present) {
    std::vector<ConversionStep> route = layouts_.route(known, layout, type);
    if (best.empty() || route.size() < best.size()) best = std::move(route);
  }
  return best;
}

// The route with the lowest price; empty if prices are not known.
std::vector<ConversionStep> StepBuilder::cheapest_conversions_to(ValueId value,
                                                                 LayoutId layout) const {
  if (at(value.index) >= conversion_prices_.size()) return {};
  const std::vector<double>& prices = conversion_prices_[at(value.index)];
  if (prices.empty()) return {};
  std::vector<int> present;
  for (const auto& [known, buffer] : present_[at(value.index)]) present.push_back(known.index);
  const auto count = static_cast<int>(layouts_.size());
  const std::vector<int> way =
      cheapest_conversions(count, present, layout.index,
                           [&](int from, int to) { return prices[at(from * count + to)]; });
  const TensorType type = *plan_.buffers[at(present_[at(value.index)][0].second)].type;
  std::vector<ConversionStep> steps;
  for (size_t hop = 1; hop < way.size(); ++hop) {
    for (ConversionStep& step : layouts_.route({way[hop - 1]}, {way[hop]}, type)) {
      steps.push_back(step);
    }
  }
  return steps;
}

int StepBuilder::convert(ValueId value, LayoutId layout) {
  const std::vector<ConversionStep> best = way_to(value, layout);
  int from = obtain(value, best.front().from, PortRequirements{});
  for (const ConversionStep& conversion : best) {
    const int to = add_buffer(Kind::Arena, value, conversion.to);
    ExecutionStep step;
    step.kind = ExecutionStep::Kind::Convert;
    step.device = conversion.device;
    step.conversion = conversion;
    step.inputs = {from};
    step.outputs = {{to, TESSERA_REQUEST_WRITE}};
    add_step(std::move(step));
    note(value, conversion.to, to);
    from = to;
  }
  return from;
}

// Makes a dense copy of `buffer` in its own memory, which later readers share.
int StepBuilder::copied(int buffer) {
  const ValueId value = plan_.buffers[at(buffer)].value;
  const LayoutId layout = plan_.buffers[at(buffer)].layout;
  const int to = add_buffer(Kind::Arena, value, layout);
  ExecutionStep step;
  step.kind = ExecutionStep::Kind::Copy;
  step.device = layouts_.device_of(layout);
  step.inputs = {buffer};
  step.outputs = {{to, TESSERA_REQUEST_WRITE}};
  add_step(std::move(step));
  note(value, layout, to);
  return to;
}

int StepBuilder::constant(const CandidateInput& port, int candidate) {
  const std::string pack_id = port.pack == nullptr ? ""
                                                   : offers_.candidates[at(candidate)].backend() +
                                                         "/" + std::string(port.pack->id);
  const auto key = std::tuple(port.value, port.layout, pack_id);
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  const int buffer = add_buffer(Kind::Constant, port.value, port.layout);
  PlanBuffer& made = plan_.buffers[at(buffer)];
  made.index = static_cast<int>(plan_.constants.size());
  if (port.pack != nullptr) made.bytes = port.pack->bytes;
  plan_.constants.push_back(
      {port.value, port.layout, made.device, port.pack, candidate, made.bytes});
  constants_[key] = buffer;
  return buffer;
}

}  // namespace tessera
