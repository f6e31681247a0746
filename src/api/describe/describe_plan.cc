#include "api/describe/describe_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "ops/op.h"
#include "ops/work.h"
#include "plan/arena_blocks.h"
#include "plan/memory_use.h"

namespace tessera {
namespace {

const PlanBuffer& buffer_of(const BuiltPlan& built, int index) {
  return built.plan.buffers[static_cast<size_t>(index)];
}

PlanPort describe_port(const BuiltPlan& built, int index) {
  const PlanBuffer& buffer = buffer_of(built, index);
  PlanPort port{.value = built.graph[buffer.value].name,
                .type = text(built.graph[buffer.value].type),
                .layout = built.layouts->name(buffer.layout),
                .device = built.layouts->device_label(buffer.layout)};
  if (const std::optional<SparseForm> form = built.layouts->sparse_form(buffer.layout)) {
    const int64_t most = max_stored(form->format, buffer.type->dims);
    port.capacity = form->capacity;
    port.density = most == 0 ? 1 : static_cast<double>(form->capacity) / static_cast<double>(most);
  }
  port.is_constant = buffer.kind == PlanBuffer::Kind::Constant;
  if (port.is_constant) {
    const tessera_pack* pack = built.plan.constants[static_cast<size_t>(buffer.index)].pack;
    if (pack != nullptr) port.pack = pack->id;
  }
  return port;
}

// For each node, the indices of its refusals in Offers::refusals.
std::vector<std::vector<size_t>> refusals_of_nodes(const BuiltPlan& built) {
  std::vector<std::vector<size_t>> of_nodes(built.graph.nodes.size());
  for (size_t position = 0; position < built.offers.refusals.size(); ++position) {
    of_nodes[static_cast<size_t>(built.offers.refusals[position].node.index)].push_back(position);
  }
  return of_nodes;
}

// Computes PlanStep::unfused_bytes. Constants count once, and not at all if the kernel reads them
// only while it is built.
std::optional<int64_t> unfused_bytes(const Graph& graph, const Candidate& candidate,
                                     const ops::Registry& registry) {
  std::set<ValueId> constants(candidate.absorbed.begin(), candidate.absorbed.end());
  int64_t bytes = 0;
  int computed = 0;
  const auto add = [&](ValueId id) {
    if (!id.is_none()) {
      bytes = ops::saturating_add(bytes, type_bytes(graph[id].type).value_or(0));
    }
  };
  for (const NodeId id : candidate.nodes) {
    const Node& node = graph[id];
    if (registry.has_trait(node, ops::kView)) continue;
    ++computed;
    for (const ValueId input : std::set<ValueId>(node.inputs.begin(), node.inputs.end())) {
      const bool is_counted =
          !input.is_none() && graph[input].is_constant() && !constants.insert(input).second;
      if (!is_counted) add(input);
    }
    for (const ValueId output : node.outputs) add(output);
  }
  return computed > 1 ? std::optional(bytes) : std::nullopt;
}

// PlanStep::built_for of the kernel.
std::string built_for_text(const Graph& graph, const Candidate& candidate) {
  if (!candidate.has_kernel()) return "";
  if (!candidate.takes_sizes()) return "all";
  std::string text;
  for (const auto& [port, axis] :
       std::span(candidate.abi->built_for, static_cast<size_t>(candidate.abi->built_for_count))) {
    const ValueId value = candidate.inputs[static_cast<size_t>(port)].value;
    if (graph[value].is_constant()) continue;
    text += (text.empty() ? "" : ", ") + graph[value].name + "[" + std::to_string(axis) + "]";
  }
  return text;
}

void describe_kernel(const BuiltPlan& built, const ExecutionStep& step,
                     const std::vector<std::vector<size_t>>& refusals,
                     const ops::Registry& registry, PlanStep& described) {
  const Candidate& candidate = built.offers.candidates[static_cast<size_t>(step.candidate)];
  described.backend = candidate.backend();
  described.algorithm = candidate.algorithm;
  if (candidate.threads != 0) described.threads = candidate.threads;
  for (const NodeId id : candidate.nodes) {
    const Node& node = built.graph[id];
    described.nodes.push_back(node.name);
    described.op += (described.op.empty() ? "" : "+") + node.op;
    described.flops += ops::node_flops(built.graph, node, registry).value_or(0);
  }
  described.name = described.nodes.back();
  described.built_for = built_for_text(built.graph, candidate);
  described.unfused_bytes = unfused_bytes(built.graph, candidate, registry);
  std::vector<size_t> places;
  for (const NodeId id : candidate.nodes) {
    const std::vector<size_t>& of_node = refusals[static_cast<size_t>(id.index)];
    places.insert(places.end(), of_node.begin(), of_node.end());
  }
  std::sort(places.begin(), places.end());
  for (const size_t position : places) {
    const Refusal& refusal = built.offers.refusals[position];
    if (refusal.backend == candidate.backend()) continue;
    described.refusals.push_back({refusal.backend, built.graph[refusal.node].name, refusal.reason});
  }
}

PlanStep describe_step(const BuiltPlan& built, const ExecutionStep& step,
                       const std::vector<std::vector<size_t>>& refusals, int threads,
                       const ops::Registry& registry) {
  PlanStep described{.threads = threads};
  for (const int input : step.inputs) {
    described.inputs.push_back(describe_port(built, input));
    described.bytes = ops::saturating_add(described.bytes, buffer_of(built, input).bytes);
  }
  for (const PlanOutput& output : step.outputs) {
    described.outputs.push_back(describe_port(built, output.buffer));
    described.bytes = ops::saturating_add(described.bytes, buffer_of(built, output.buffer).bytes);
    described.is_in_place = described.is_in_place || output.request == TESSERA_REQUEST_IN_PLACE ||
                            output.request == TESSERA_REQUEST_ADD;
  }
  described.workspace_bytes = step.workspace_bytes;
  // A view moves no data.
  if (step.kind == ExecutionStep::Kind::View) described.bytes = 0;
  if (step.candidate >= 0) {
    describe_kernel(built, step, refusals, registry, described);
    return described;
  }
  const bool is_conversion = step.kind == ExecutionStep::Kind::Convert;
  described.name = described.inputs[0].value;
  described.op = is_conversion ? "convert" : "copy";
  const bool changes_device = described.inputs[0].device != described.outputs[0].device;
  if (is_conversion && changes_device) described.op = "convert+copy";
  // The host itself converts sparse layouts.
  const bool has_backend = is_conversion && step.conversion.plugin != nullptr;
  if (has_backend) described.backend = step.conversion.plugin->name();
  return described;
}

// The block of a workspace has the name of its step, which is the only one that uses the block.
MemoryBlock describe_block(const BuiltPlan& built, const ArenaBlock& block,
                           const std::vector<PlanStep>& steps) {
  MemoryBlock described{.lower = block.lower,
                        .upper = block.upper,
                        .bytes = block.bytes,
                        .offset = block.offset,
                        .is_workspace = block.buffer < 0};
  if (described.is_workspace) {
    described.name = steps[static_cast<size_t>(block.lower)].name;
    return described;
  }
  const PlanPort port = describe_port(built, block.buffer);
  described.name = port.value;
  described.text = port.type + ", " + port.layout;
  return described;
}

std::vector<DeviceMemoryDescription> describe_device_memory(const BuiltPlan& built) {
  std::vector<DeviceMemoryDescription> devices;
  for (size_t index = 0; index < built.plan.device_arenas.size(); ++index) {
    const DeviceId id{static_cast<int32_t>(index) + 1};
    const ArenaSize& arena = built.plan.device_arenas[index];
    DeviceMemoryDescription memory{.device = built.layouts->device(id).name(),
                                   .arena_bytes = arena.bytes,
                                   .lower_bound_bytes = arena.lower_bound_bytes,
                                   .is_proven_smallest = arena.is_smallest};
    for (const PlanConstant& constant : built.plan.constants) {
      if (constant.device == id) memory.weight_bytes += constant.bytes;
    }
    if (memory.arena_bytes > 0 || memory.weight_bytes > 0) devices.push_back(std::move(memory));
  }
  return devices;
}

MemoryDescription describe_memory(const BuiltPlan& built, const std::vector<PlanStep>& steps) {
  const ValueBytes values = value_bytes(built.plan);
  const MemoryUse use = memory_use(built.plan, built.offers);
  MemoryDescription memory{.arena_bytes = built.plan.arena_bytes,
                           .lower_bound_bytes = built.plan.lower_bound_bytes,
                           .is_proven_smallest = built.plan.is_smallest_arena,
                           .naive_bytes = values.stored,
                           .padding_bytes = values.stored - values.logical,
                           .weight_bytes = use.weight_bytes,
                           .output_bytes = use.output_bytes,
                           .library_bytes = use.library_bytes,
                           .total_bytes = use.total_bytes()};
  memory.devices = describe_device_memory(built);
  for (const ArenaBlock& block : arena_blocks(built.plan)) {
    if (block.device != kHostDevice) continue;
    memory.blocks.push_back(describe_block(built, block, steps));
  }
  return memory;
}

}  // namespace

PlanDescription describe_plan(const BuiltPlan& built, int64_t pack_bytes, int threads,
                              const ops::Registry& registry) {
  PlanDescription description{.arena_bytes = built.plan.arena_bytes, .pack_bytes = pack_bytes};
  const std::vector<std::vector<size_t>> refusals = refusals_of_nodes(built);
  for (const ExecutionStep& step : built.plan.steps) {
    description.steps.push_back(describe_step(built, step, refusals, threads, registry));
  }
  description.memory = describe_memory(built, description.steps);
  description.library_bytes = description.memory.library_bytes;
  return description;
}

}  // namespace tessera
