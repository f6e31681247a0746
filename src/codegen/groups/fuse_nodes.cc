#include "codegen/groups/fuse_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "codegen/groups/group_lowering.h"

namespace tessera::codegen {
namespace {

// The maximum size of a kernel. A chain of 1,100 operations fits.
constexpr size_t kMaxInstructions = 6'000;
constexpr size_t kMaxAccesses = 48;
constexpr int kMaxReductionDepth = 3;

// The values that are read outside of the group, in the order of their nodes.
std::vector<ValueId> results_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::map<ValueId, int> reads;
  for (const NodeId node : nodes) {
    for (const ValueId input : graph.graph[node].inputs) {
      if (!input.is_none()) ++reads[input];
    }
  }
  std::vector<ValueId> results;
  for (const NodeId node : nodes) {
    for (const ValueId value : graph.graph[node].outputs) {
      if (value.is_none()) continue;
      const auto found = reads.find(value);
      const int inside = found == reads.end() ? 0 : found->second;
      if (graph.use_counts[static_cast<size_t>(value.index)] > inside) results.push_back(value);
    }
  }
  return results;
}

// The traits of an access besides its value: its type, and the axes that it passes through. For a
// whole tensor, these are all axes, whose number must not count, because they are merged later.
std::string trait_of(const plugin::FusedAccess& access) {
  std::string trait = std::to_string(access.data_type);
  if (access.is_whole) return trait + "w";
  for (const int64_t stride : access.strides) trait += stride == 0 ? '0' : '1';
  return trait;
}

int32_t port_of(std::vector<int32_t>& ports, ValueId value) {
  const auto found = std::find(ports.begin(), ports.end(), value.index);
  if (found != ports.end()) return static_cast<int32_t>(found - ports.begin());
  ports.push_back(value.index);
  return static_cast<int32_t>(ports.size() - 1);
}

// The minimum number of bytes that a group moves. It may read only a part of a tensor that is cut.
int64_t bytes_of(const FusionGraph& graph, const plugin::FusedGroup& group) {
  std::vector<int64_t> read(group.inputs.size(), 0);
  for (const plugin::FusedAccess& access : group.operands) {
    int64_t bytes = element_bytes(static_cast<DataType>(access.data_type));
    for (size_t axis = 0; axis < group.dims.size(); ++axis) {
      if (access.strides[axis] != 0) bytes *= group.dims[axis];
    }
    read[static_cast<size_t>(access.port)] += bytes;
  }
  const auto all = [&](int32_t value) {
    return type_bytes(graph.graph[ValueId{value}].type).value_or(0);
  };
  int64_t bytes = 0;
  for (size_t port = 0; port < group.inputs.size(); ++port) {
    bytes += std::min(read[port], all(group.inputs[port]));
  }
  for (const int32_t value : group.outputs) bytes += all(value);
  return bytes;
}

plugin::Instruction to_plugin(const Instruction& instruction) {
  return {static_cast<int32_t>(instruction.operation),
          static_cast<int32_t>(instruction.type),
          {instruction.arguments[0], instruction.arguments[1], instruction.arguments[2]},
          instruction.index,
          instruction.bits};
}

// Fills in operands, results and instructions in their canonical order.
void set_expression(const GroupLowering& lowering, const std::vector<ValueId>& results,
                    plugin::FusedGroup& group) {
  std::vector<std::string> operand_traits;
  for (const auto& [value, access] : lowering.operands()) {
    operand_traits.push_back(trait_of(access));
  }
  std::vector<PartResult> accesses;
  for (const ValueId value : results) {
    for (PartResult& result : lowering.results(value)) {
      accesses.push_back(std::move(result));
    }
  }
  std::vector<std::string> result_traits;
  std::vector<InstructionId> numbers;
  for (const PartResult& result : accesses) {
    result_traits.push_back(trait_of(result.access));
    numbers.push_back(result.instruction);
  }
  const CanonicalExpression expression =
      canonical(lowering.builder().instructions(), numbers, operand_traits, result_traits);
  for (const int32_t old : expression.operand_order) {
    const auto& [value, access] = lowering.operands()[static_cast<size_t>(old)];
    group.operands.push_back(access);
    group.operands.back().port = port_of(group.inputs, value);
  }
  for (size_t index = 0; index < accesses.size(); ++index) {
    const PartResult& old = accesses[static_cast<size_t>(expression.result_order[index])];
    group.results.push_back(old.access);
    group.results.back().port = port_of(group.outputs, old.value);
    group.results.back().instruction = expression.results[index];
  }
  for (const Instruction& instruction : expression.instructions) {
    group.instructions.push_back(to_plugin(instruction));
  }
  group.text = text(expression.instructions, expression.results);
}

// Inputs that no instruction reads: the second input of CastLike, and those that decide what is
// computed. A candidate has each input of its nodes, unless it is a constant.
void add_unread_inputs(const FusionGraph& graph, std::span<const NodeId> nodes,
                       plugin::FusedGroup& group) {
  std::set<ValueId> made;
  for (const NodeId node : nodes) {
    made.insert(graph.graph[node].outputs.begin(), graph.graph[node].outputs.end());
  }
  for (const NodeId node : nodes) {
    for (const ValueId input : graph.graph[node].inputs) {
      if (input.is_none() || made.contains(input) || graph.graph[input].is_constant()) continue;
      port_of(group.inputs, input);
    }
  }
}

std::string explain_size(const plugin::FusedGroup& group) {
  if (group.instructions.size() > kMaxInstructions) return "needs too many instructions";
  if (group.operands.size() + group.results.size() > kMaxAccesses) {
    return "reads and writes too many tensors";
  }
  const std::vector<int> depths = plugin::reduction_depths(group);
  const auto deepest = std::max_element(depths.begin(), depths.end());
  if (deepest != depths.end() && *deepest > kMaxReductionDepth) {
    return "reduces too many times, one after another";
  }
  return "";
}

// How the nodes of a group together cut their tensors; nullopt if they contradict each other.
std::optional<Partition> partition_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::set<ValueId> made;
  std::optional<Partition> partition = Partition{element_count(space_dims(graph, nodes[0])), 0};
  for (const NodeId node : nodes) {
    const Node& found = graph.graph[node];
    const bool is_input_inside = made.contains(found.inputs[0]);
    made.insert(found.outputs.begin(), found.outputs.end());
    const std::optional<Partition> demanded = demanded_partition(graph, node, is_input_inside);
    if (demanded) partition = common_partition(*partition, *demanded);
    if (!partition) return std::nullopt;
  }
  return partition;
}

// The space of rows for the first inner value that is repeated along rows.
std::optional<GroupSpace> row_space_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  std::set<ValueId> made;
  for (const NodeId node : nodes) {
    const Node& found = graph.graph[node];
    for (size_t index = 0; index < found.inputs.size(); ++index) {
      if (!made.contains(found.inputs[index])) continue;
      const std::optional<RepeatedRows> rows = demanded_rows(graph, node, index);
      if (rows) return space_of_rows(*rows);
    }
    made.insert(found.outputs.begin(), found.outputs.end());
  }
  return std::nullopt;
}

bool add_nodes(const FusionGraph& graph, std::span<const NodeId> nodes,
               std::optional<GroupSpace>& space) {
  return space && std::ranges::all_of(nodes, [&](NodeId node) {  //
           return add_node(graph, node, *space);
         });
}

std::optional<GroupSpace> space_of(const FusionGraph& graph, std::span<const NodeId> nodes) {
  const std::optional<Partition> partition = partition_of(graph, nodes);
  if (!partition) return std::nullopt;
  std::optional<GroupSpace> space = first_space(graph, nodes[0], *partition);
  if (add_nodes(graph, nodes, space)) return space;
  if (partition->part_elements != 0) return std::nullopt;
  space = row_space_of(graph, nodes);
  return add_nodes(graph, nodes, space) ? space : std::nullopt;
}

// Without a reduction, axes are reduced only in order to compute rows once. Returns false if a
// result is a row.
bool drop_needless_reduction(plugin::FusedGroup& group) {
  if (group.reduced_axes == 0) return true;
  if (std::ranges::any_of(group.instructions, plugin::is_reduction)) return true;
  for (size_t axis = 0; axis < group.dims.size(); ++axis) {
    if (!group.is_reduced(axis) || group.dims[axis] == 1) continue;
    for (const plugin::FusedAccess& result : group.results) {
      if (result.strides[axis] == 0) return false;
    }
  }
  group.reduced_axes = 0;
  return true;
}

}  // namespace

FusedNodes fuse_nodes(const FusionGraph& graph, std::span<const NodeId> nodes) {
  if (nodes.empty()) return {{}, "has no nodes"};
  for (const NodeId node : nodes) {
    const FusionRole& role = graph.role(node);
    if (role.kind == FusionKind::None) return {{}, role.refusal};
  }
  const std::optional<GroupSpace> space = space_of(graph, nodes);
  if (!space) return {{}, "does not fit into one pass with the others"};
  GroupLowering lowering(graph, *space);
  for (const NodeId node : nodes) {
    if (!lowering.lower(node)) return {{}, "reads a tensor in a way that one pass cannot"};
  }
  plugin::FusedGroup group;
  for (const NodeId node : nodes) group.nodes.push_back(node.index);
  group.dims = space->space.axes();
  for (size_t axis = 0; axis < group.dims.size(); ++axis) {
    if (space->space.reduced()[axis]) group.reduced_axes |= uint64_t{1} << axis;
  }
  set_expression(lowering, results_of(graph, nodes), group);
  if (!drop_needless_reduction(group)) return {{}, "writes rows, but reduces nothing"};
  add_unread_inputs(graph, nodes, group);
  group.flops = group.points() * static_cast<int64_t>(group.instructions.size());
  group.bytes = bytes_of(graph, group);
  std::string refusal = explain_size(group);
  if (!refusal.empty()) return {{}, std::move(refusal)};
  return {std::move(group), ""};
}

}  // namespace tessera::codegen
