// Proposes elementwise ops in any dense layout, and groups of them in one pass.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/families.h"
#include "elementwise/byte_function.h"
#include "elementwise/lower_node.h"
#include "elementwise/program.h"
#include "elementwise/program_builder.h"

namespace tessera::native {

using plugin::Candidate;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::OutputPort;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// The program of a node or group, and the values of its input ports.
struct GroupProgram {
  Program program;
  std::vector<int32_t> ports;
  bool can_be_dense = true;
  Value result;
};

// Throws Failure with the reason if a node has no program; nullopt if the group needs too many
// operands, registers or axes.
std::optional<GroupProgram> lower_group(const Graph& graph, const std::vector<int32_t>& nodes) {
  const Value result = elementwise_result(graph.node(nodes.back()));
  if (!result.is_present()) {
    throw Failure(TESSERA_UNSUPPORTED, "there is no native kernel for this op");
  }
  ProgramBuilder builder(result.type());
  for (const int32_t id : nodes) lower_node(graph.node(id), builder);
  std::optional<Program> program = builder.finish(result);
  if (!program) return std::nullopt;
  const bool can_be_dense = builder.can_be_dense(*program);
  if (std::optional<Program> table = table_program(*program)) program = std::move(table);
  return GroupProgram{*std::move(program), builder.ports(), can_be_dense, result};
}

// The best input port for the result to overwrite, or -1: preferably a value without another
// reader, then one with others, last an input of the graph.
int32_t in_place_port(const Graph& graph, const GroupProgram& group_program) {
  int32_t best = -1;
  int best_rank = 0;
  for (const ProgramOperand& operand : group_program.program.operands) {
    if (operand.port < 0) continue;
    const Value value = graph.value(group_program.ports[static_cast<size_t>(operand.port)]);
    const bool is_same_storage =
        value.type().dims == group_program.program.result.dims &&
        operand.dims == value.type().dims &&
        operand.element_bytes == plugin::element_bytes(group_program.program.result.data_type);
    if (!is_same_storage || value.is_constant()) continue;
    const bool has_one_reader = value.consumers().size() == 1 && !value.is_needed();
    const int rank = value.is_input() ? 1 : has_one_reader ? 3 : 2;
    if (rank <= best_rank) continue;
    best = operand.port;
    best_rank = rank;
  }
  return best;
}

Candidate candidate_of(const ProposeContext& context, const std::vector<int32_t>& nodes,
                       GroupProgram group_program) {
  const Graph& graph = context.graph();
  Candidate candidate;
  candidate.nodes = nodes;
  candidate.algorithm = nodes.size() == 1 ? "elements" : "elements_in_one_pass";
  if (group_program.program.table) candidate.algorithm = "byte_table";
  if (nodes.size() > 1) candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  const std::string layout =
      group_program.can_be_dense ? TESSERA_LAYOUT_ANY_DENSE : TESSERA_LAYOUT_DEFAULT;
  const bool is_quantized =
      is_quantization(graph.node(nodes.front())) || is_quantization(graph.node(nodes.back()));
  double bytes = static_cast<double>(group_program.program.result.dense_bytes());
  for (size_t index = 0; index < group_program.ports.size(); ++index) {
    const int32_t value = group_program.ports[index];
    const auto reads_dense = [&](const ProgramOperand& operand) {
      return operand.port == static_cast<int>(index) && !operand.is_row_major;
    };
    const bool is_dense = std::any_of(group_program.program.operands.begin(),
                                      group_program.program.operands.end(), reads_dense);
    candidate.inputs.push_back(
        {.value = value, .layout = is_dense ? layout : TESSERA_LAYOUT_DEFAULT});
    // Quantised networks take arrays of callers, which would be copied if they had to be aligned.
    if (is_quantized) {
      candidate.inputs.back().alignment_bytes =
          plugin::element_bytes(graph.value(value).type().data_type);
    }
    bytes += static_cast<double>(graph.value(value).type().dense_bytes());
  }
  OutputPort output = {.value = group_program.result.id(), .layout = layout};
  output.in_place_input = in_place_port(graph, group_program);
  if (output.in_place_input >= 0) {
    output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  }
  candidate.outputs.push_back(output);
  const double flops = static_cast<double>(group_program.program.result.elements()) *
                       static_cast<double>(group_program.program.steps.size());
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.built_for = std::vector<tessera_built_for>();
  candidate.build = [program =
                         std::move(group_program.program)](const plugin::BuildOptions& options) {
    const bool is_dense = !options.dense_layout.empty();
    return make_program_kernel(program, is_dense ? options.dense_layout : TESSERA_LAYOUT_DEFAULT);
  };
  accept_any_address(graph, candidate);
  return candidate;
}

// --- Groups of nodes in one pass -----------------------------------------------------------------

// The largest group. Models decompose no function into more nodes, and larger groups make the
// choice slower for all.
constexpr size_t kMaxGroupNodes = 8;

// The node that produces `value`, if it can join `group`, which must contain all its readers; else
// -1.
int32_t absorbable(const Graph& graph, const std::vector<bool>& is_element, const Value& value,
                   const std::vector<int32_t>& group, const std::vector<int64_t>& dims) {
  const int32_t producer = value.producer();
  if (producer < 0 || !is_element[static_cast<size_t>(producer)] || value.is_needed()) return -1;
  if (elementwise_result(graph.node(producer)).id() != value.id()) return -1;
  // It ends what comes before it, which another kernel may compute with integers.
  const Node node = graph.node(producer);
  if (is_quantization(node) && node.op() == "QuantizeLinear") return -1;
  if (value.type().dims != dims) return -1;
  const auto is_inside = [&](int32_t reader) {
    return std::binary_search(group.begin(), group.end(), reader);
  };
  const bool is_kept = std::all_of(value.consumers().begin(), value.consumers().end(), is_inside);
  return is_kept ? producer : -1;
}

// The largest group with the result of `last`; ascending ids.
std::vector<int32_t> group_before(const Graph& graph, const std::vector<bool>& is_element,
                                  int32_t last) {
  const std::vector<int64_t> dims = elementwise_result(graph.node(last)).type().dims;
  std::vector<int32_t> group = {last};
  bool has_grown = true;
  while (has_grown && group.size() < kMaxGroupNodes) {
    has_grown = false;
    // The latest node first: a node joins after all of its readers.
    for (size_t at = group.size(); at > 0 && !has_grown; --at) {
      const Node node = graph.node(group[at - 1]);
      for (size_t index = 0; index < node.input_count() && !has_grown; ++index) {
        const Value input = node.input(index);
        if (!input.is_present()) continue;
        const int32_t producer = absorbable(graph, is_element, input, group, dims);
        const auto position = std::lower_bound(group.begin(), group.end(), producer);
        if (producer < 0 || (position != group.end() && *position == producer)) continue;
        group.insert(position, producer);
        has_grown = true;
      }
    }
  }
  return group;
}

// All groups of two or more nodes (ascending ids) that can be computed in one pass:
// is_element[node] holds for each node, all results have the same dimensions, and only the last one
// is read outside. Larger groups come first. A group without its first nodes is a group too,
// because another backend may take these. `fits` tells whether a group is small enough.
std::vector<std::vector<int32_t>> find_element_groups(
    const Graph& graph, const std::vector<bool>& is_element,
    const std::function<bool(const std::vector<int32_t>& nodes)>& fits) {
  // Each has another last node or another size.
  std::vector<std::vector<int32_t>> groups;
  std::vector<bool> is_inside(is_element.size(), false);
  for (int32_t last = graph.node_count() - 1; last >= 0; --last) {
    if (!is_element[static_cast<size_t>(last)]) continue;
    std::vector<int32_t> nodes = group_before(graph, is_element, last);
    // A node within a larger group may end a group too, which is then not cut further.
    const bool ends_inside = is_inside[static_cast<size_t>(last)];
    bool has_fit = false;
    while (nodes.size() > 1) {
      if (fits(nodes)) {
        groups.push_back(nodes);
        for (const int32_t id : std::span(nodes).first(nodes.size() - 1)) {
          is_inside[static_cast<size_t>(id)] = true;
        }
        has_fit = true;
      }
      if (has_fit && ends_inside) break;
      nodes.erase(nodes.begin());
    }
  }
  std::sort(groups.begin(), groups.end(), [](const auto& left, const auto& right) {
    return left.size() != right.size() ? left.size() > right.size() : left < right;
  });
  return groups;
}

}  // namespace

void propose_elementwise(ProposeContext& context) {
  const Graph& graph = context.graph();
  std::vector<bool> is_element(static_cast<size_t>(graph.node_count()), false);
  std::vector<Candidate> single;
  for (int32_t id = 0; id < graph.node_count(); ++id) {
    if (!elementwise_result(graph.node(id)).is_present()) continue;
    try {
      std::optional<GroupProgram> group_program = lower_group(graph, {id});
      if (!group_program) {
        context.refuse(id, "has more operands or axes than one pass can read");
        continue;
      }
      is_element[static_cast<size_t>(id)] = true;
      single.push_back(candidate_of(context, {id}, *std::move(group_program)));
    } catch (const Failure& failure) {
      context.refuse(id, failure.what());
    }
  }
  std::map<std::pair<int32_t, size_t>, GroupProgram> groups;  // by their last node and their size
  const auto fits = [&](const std::vector<int32_t>& nodes) {
    std::optional<GroupProgram> group_program = lower_group(graph, nodes);
    if (!group_program) return false;
    groups.emplace(std::pair(nodes.back(), nodes.size()), *std::move(group_program));
    return true;
  };
  for (const std::vector<int32_t>& nodes : find_element_groups(graph, is_element, fits)) {
    context.add(candidate_of(context, nodes, std::move(groups.at({nodes.back(), nodes.size()}))));
  }
  for (Candidate& candidate : single) context.add(std::move(candidate));
}

}  // namespace tessera::native
