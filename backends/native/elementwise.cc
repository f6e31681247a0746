// Functions of elements, of one operand or more, in whatever dense layout; and groups of them in
// one pass.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "element_groups.h"
#include "families.h"
#include "node_program.h"
#include "program.h"
#include "program_writer.h"

namespace tessera::native {

using plugin::Candidate;
using plugin::Failure;
using plugin::Graph;
using plugin::OutputPort;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// A program, and the values of its ports.
struct Written {
  ProgramText text;
  std::vector<int32_t> ports;
  bool can_be_dense = true;
  Value result;
};

// Throws Failure with the reason where a node has no program; nullopt where all together need too
// much.
std::optional<Written> write(const Graph& graph, const std::vector<int32_t>& nodes) {
  const Value result = elementwise_result(graph.node(nodes.back()));
  if (!result.is_present()) {
    throw Failure(TESSERA_UNSUPPORTED, "there is no native kernel for this op");
  }
  ProgramWriter writer(result.type());
  for (const int32_t id : nodes) write_node(graph.node(id), writer);
  std::optional<ProgramText> text = writer.finish(result);
  if (!text) return std::nullopt;
  const bool can_be_dense = writer.can_be_dense(*text);
  return Written{*std::move(text), writer.ports(), can_be_dense, result};
}

// The port whose memory the result takes best, or -1: one that nobody else reads before one that
// others do, and that before an input of the graph.
int32_t in_place_port(const Graph& graph, const Written& written) {
  int32_t best = -1;
  int best_rank = 0;
  for (const ProgramOperand& operand : written.text.operands) {
    if (operand.port < 0) continue;
    const Value value = graph.value(written.ports[static_cast<size_t>(operand.port)]);
    const bool is_same_storage =
        value.type().dims == written.text.result.dims && operand.dims == value.type().dims &&
        operand.element_bytes == plugin::element_bytes(written.text.result.data_type);
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
                       Written written) {
  const Graph& graph = context.graph();
  Candidate candidate;
  candidate.nodes = nodes;
  candidate.algorithm = nodes.size() == 1 ? "elements" : "elements_in_one_pass";
  const std::string layout =
      written.can_be_dense ? TESSERA_LAYOUT_ANY_DENSE : TESSERA_LAYOUT_DEFAULT;
  double bytes = static_cast<double>(written.text.result.dense_bytes());
  for (size_t index = 0; index < written.ports.size(); ++index) {
    const int32_t value = written.ports[index];
    const auto reads_dense = [&](const ProgramOperand& operand) {
      return operand.port == static_cast<int>(index) && !operand.is_row_major;
    };
    const bool is_dense =
        std::any_of(written.text.operands.begin(), written.text.operands.end(), reads_dense);
    candidate.inputs.push_back(
        {.value = value, .layout = is_dense ? layout : TESSERA_LAYOUT_DEFAULT});
    bytes += static_cast<double>(graph.value(value).type().dense_bytes());
  }
  OutputPort output = {.value = written.result.id(), .layout = layout};
  output.in_place_input = in_place_port(graph, written);
  if (output.in_place_input >= 0) {
    output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  }
  candidate.outputs.push_back(output);
  const double flops = static_cast<double>(written.text.result.elements()) *
                       static_cast<double>(written.text.steps.size());
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.build = [text = std::move(written.text)](const plugin::BuildOptions& options) {
    const bool is_dense = !options.dense_layout.empty();
    return build_program(text, is_dense ? options.dense_layout : TESSERA_LAYOUT_DEFAULT);
  };
  return candidate;
}

}  // namespace

void propose_elementwise(ProposeContext& context) {
  const Graph& graph = context.graph();
  std::vector<bool> is_element(static_cast<size_t>(graph.node_count()), false);
  std::vector<Candidate> single;
  for (int32_t id = 0; id < graph.node_count(); ++id) {
    if (!elementwise_result(graph.node(id)).is_present()) continue;
    try {
      std::optional<Written> written = write(graph, {id});
      if (!written) {
        context.refuse(id, "has more operands than one pass can read");
        continue;
      }
      is_element[static_cast<size_t>(id)] = true;
      single.push_back(candidate_of(context, {id}, *std::move(written)));
    } catch (const Failure& failure) {
      context.refuse(id, failure.what());
    }
  }
  std::map<std::pair<int32_t, size_t>, Written> groups;  // by their last node and their size
  const auto fits = [&](const std::vector<int32_t>& nodes) {
    std::optional<Written> written = write(graph, nodes);
    if (!written) return false;
    groups.emplace(std::pair(nodes.back(), nodes.size()), *std::move(written));
    return true;
  };
  for (const std::vector<int32_t>& nodes : find_element_groups(graph, is_element, fits)) {
    context.add(candidate_of(context, nodes, std::move(groups.at({nodes.back(), nodes.size()}))));
  }
  for (Candidate& candidate : single) context.add(std::move(candidate));
}

}  // namespace tessera::native
