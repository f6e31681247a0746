// Proposes LSTM, GRU and RNN in one or both directions. Each step reads all recurrent weights, so
// with few sequences the reads dominate: the weights are packed in the order in which they are
// read, and each direction stays on one core, whose cache may hold them. recurrence_run.cc has the
// kernel.
#include "recurrent/recurrence.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/refusal.h"
#include "recurrent/recurrence_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// --- Refusals ------------------------------------------------------------------------------------

bool is_lstm(const Node& node) { return node.op() == "LSTM"; }

RecurrentCell cell_of(const Node& node) {
  if (is_lstm(node)) return RecurrentCell::Lstm;
  return node.op() == "GRU" ? RecurrentCell::Gru : RecurrentCell::Rnn;
}

void check_inputs(const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{6}}) {
    const Value value = node.input(index);
    if (!value.is_present()) continue;
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      refuse("takes float32 tensors of known shape only");
    }
    if (index >= 1 && index <= 3 && !value.is_constant()) {
      refuse("packs constant weights, which '" + value.name() + "' is not");
    }
  }
  if (is_lstm(node) && node.input(7).is_present()) refuse("computes no peephole connections");
}

// The activations of one direction, and what other ones are refused with.
struct CellFunctions {
  std::vector<std::string> names;
  const char* refusal = "";
};

CellFunctions functions_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::Lstm:
      return {{"sigmoid", "tanh", "tanh"}, "has Sigmoid, Tanh and Tanh for its activations only"};
    case RecurrentCell::Gru:
      return {{"sigmoid", "tanh"}, "has Sigmoid and Tanh for its activations only"};
    case RecurrentCell::Rnn:
      return {{"tanh"}, "has Tanh for its activation only"};
  }
  return {};
}

// Only the default activations are supported. Files write their names in several ways.
void check_functions(const Node& node) {
  const CellFunctions expected = functions_of(cell_of(node));
  std::vector<std::string> names = node.attributes().get_strings("activations");
  for (size_t index = 0; index < names.size(); ++index) {
    std::string& name = names[index];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (name != expected.names[index % expected.names.size()]) refuse(expected.refusal);
  }
}

// sequence_lens is accepted if all lengths are equal to the number of steps.
void check_lengths(const Node& node, int64_t steps) {
  const Value lengths = node.input(4);
  if (!lengths.is_present()) return;
  if (lengths.is_constant() && lengths.constant() != nullptr) {
    const std::span<const int32_t> numbers = lengths.constant_as<int32_t>();
    if (std::all_of(numbers.begin(), numbers.end(), [&](int32_t n) { return n == steps; })) return;
  }
  refuse("takes sequences of one length only (sequence_lens)");
}

// Large weights make a recurrence without gates chaotic: each step multiplies the rounding errors
// of all steps before it.
constexpr int64_t kMaxRnnSteps = 32;

RecurrentSizes sizes_of(const Node& node) {
  check_inputs(node);
  const plugin::Attributes attributes = node.attributes();
  if (attributes.get_int("layout") != 0) refuse("takes steps before batches only (layout = 0)");
  if (attributes.has("clip")) refuse("does not clip its sums");
  check_functions(node);
  if (is_lstm(node) && attributes.get_int("input_forget") != 0) {
    refuse("does not couple the input and forget gates (input_forget)");
  }
  if (node.op() == "GRU" && attributes.get_int("linear_before_reset") == 0) {
    refuse("applies the reset gate after the product only (linear_before_reset = 1)");
  }
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> recurrent = node.input(2).type().dims;
  RecurrentSizes sizes = {.cell = cell_of(node),
                          .steps = input[0],
                          .batch = input[1],
                          .features = input[2],
                          .hidden = recurrent[2],
                          .directions = recurrent[0]};
  sizes.is_reverse = attributes.get_string("direction") == "reverse";
  if (sizes.steps == 0 || sizes.batch == 0) refuse("the sequence has no steps");
  if (sizes.cell == RecurrentCell::Rnn && sizes.steps > kMaxRnnSteps) {
    refuse("is not exact enough for RNN of more than " + std::to_string(kMaxRnnSteps) + " steps");
  }
  check_lengths(node, sizes.steps);
  return sizes;
}

// --- Candidates ----------------------------------------------------------------------------------

// The Transpose that alone reads `value` and makes directions the second last axis.
std::optional<Node> transpose_after(const plugin::Graph& graph, const Value& value) {
  const std::optional<Node> node = plugin::only_reader(graph, value);
  const std::vector<int64_t> wanted = {0, 2, 1, 3};
  if (!node || node->op() != "Transpose") return std::nullopt;
  if (node->attributes().get_ints("perm") != wanted) return std::nullopt;
  return node;
}

double optimistic_seconds(const ProposeContext& context, const RecurrentSizes& sizes) {
  const auto rows = static_cast<double>(sizes.steps * sizes.batch * sizes.directions);
  const auto weights =
      static_cast<double>(gates_of(sizes.cell) * sizes.hidden * (sizes.features + sizes.hidden));
  return context.optimistic_seconds(
      2 * rows * weights, static_cast<double>(sizes.directions) * weights * sizeof(float));
}

void offer(ProposeContext& context, const Node& node, const RecurrentSizes& sizes,
           const std::optional<Node>& transpose) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  if (transpose) candidate.nodes.push_back(transpose->id());
  candidate.algorithm = "steps";
  RecurrentPorts ports = {.is_side_by_side = transpose.has_value()};
  ports.input = plugin::input_port(candidate, node.input(0));
  ports.weights = plugin::input_port(candidate, node.input(1), recurrent_weights_pack(sizes));
  ports.recurrent = plugin::input_port(candidate, node.input(2), recurrent_states_pack(sizes));
  if (node.input(3).is_present()) {
    ports.bias = plugin::input_port(candidate, node.input(3), recurrent_bias_pack(sizes));
  }
  ports.initial_state = plugin::input_port(candidate, node.input(5));
  if (is_lstm(node)) ports.initial_cell = plugin::input_port(candidate, node.input(6));
  ports.output = plugin::output_port(candidate, transpose ? transpose->output(0) : node.output(0));
  ports.last_state = plugin::output_port(candidate, node.output(1));
  if (is_lstm(node)) ports.last_cell = plugin::output_port(candidate, node.output(2));
  // The lengths of sequences have no port; those of other sizes are not known. An RNN of other
  // sizes may have too many steps.
  const bool takes_other_sizes = !node.input(4).is_present() && sizes.cell != RecurrentCell::Rnn;
  if (takes_other_sizes) candidate.built_for = std::vector<tessera_built_for>();
  candidate.workspace_bytes = recurrent_workspace_bytes(sizes);
  candidate.workspace_for = [sizes, ports](std::span<const Buffer> inputs,
                                           std::span<const Buffer>) {
    return recurrent_workspace_bytes(ports.sizes_of(inputs, sizes));
  };
  candidate.optimistic_seconds = optimistic_seconds(context, sizes);
  candidate.build = [sizes, ports](const plugin::BuildOptions&) {
    return make_recurrent_kernel(sizes, ports);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_recurrences(ProposeContext& context) {
  context.for_each({"LSTM", "GRU", "RNN"}, [&](const Node& node) {
    const RecurrentSizes sizes = sizes_of(node);
    const std::optional<Node> transpose = transpose_after(context.graph(), node.output(0));
    if (transpose) offer(context, node, sizes, transpose);
    offer(context, node, sizes, std::nullopt);
  });
}

}  // namespace tessera::native
