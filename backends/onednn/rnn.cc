// Proposes LSTM, GRU and RNN in one or both directions. oneDNN has its own formats of weights and
// its own order of gates; recurrence.h packs and runs them.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/accuracy.h"
#include "base/context.h"
#include "base/eltwise.h"
#include "base/families.h"
#include "base/formats.h"
#include "recurrence.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Node;
using plugin::Value;

namespace {

// ONNX: input, output, forget, cell; oneDNN: input, forget, cell, output.
constexpr int64_t kLstmGates[] = {0, 2, 3, 1};
constexpr BiasRow kLstmBiases[] = {{0}, {2}, {3}, {1}};
// Both: update, reset, hidden.
constexpr int64_t kGruGates[] = {0, 1, 2};
constexpr BiasRow kGruBiases[] = {{0}, {1}, {2}};
// The reset gate is also applied to the bias of the state of the hidden gate.
constexpr BiasRow kLinearFirstBiases[] = {{0}, {1}, {2, true, false}, {2, false, true}};
constexpr int64_t kRnnGates[] = {0};
constexpr BiasRow kRnnBiases[] = {{0}};

constexpr Cell kLstm = {"lstm", kLstmGates, kLstmBiases, true};
constexpr Cell kGru = {"gru", kGruGates, kGruBiases};
constexpr Cell kLinearFirstGru = {"lbr_gru", kGruGates, kLinearFirstBiases};
constexpr Cell kRnn = {"rnn", kRnnGates, kRnnBiases};

// One node in the terms of the library.
struct Problem {
  Cell cell;
  RecurrenceSizes sizes;
  dnnl::algorithm function = dnnl::algorithm::undef;  // the activation of RNN, which can be chosen
};

Cell cell_of(const Node& node) {
  if (node.op() == "LSTM") return kLstm;
  if (node.op() == "RNN") return kRnn;
  return node.attributes().get_int("linear_before_reset") != 0 ? kLinearFirstGru : kGru;
}

// --- Refusals ------------------------------------------------------------------------------------

void check_inputs(const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{6}}) {
    if (!node.input(index).is_present()) continue;
    if (const auto reason = explain_unusable(node.input(index))) refuse(*reason);
  }
  for (size_t index = 1; index <= 3; ++index) {
    const Value weights = node.input(index);
    if (weights.is_present() && !weights.is_constant()) {
      refuse("packs constant weights, which '" + weights.name() + "' is not");
    }
  }
  if (node.input(7).is_present()) refuse("is offered without peephole connections only");
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

// The names in the attribute in lower case, because files write them in several ways.
std::vector<std::string> function_names(const Node& node) {
  std::vector<std::string> names = node.attributes().get_strings("activations");
  for (std::string& name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  }
  return names;
}

// LSTM and GRU: only the default activations.
void check_functions(const Node& node) {
  const bool is_lstm = node.op() == "LSTM";
  std::vector<std::string> expected = {"sigmoid", "tanh"};
  if (is_lstm) expected.emplace_back("tanh");
  const std::vector<std::string> names = function_names(node);
  for (size_t index = 0; index < names.size(); ++index) {
    if (names[index] == expected[index % expected.size()]) continue;
    refuse(is_lstm ? "has Sigmoid, Tanh and Tanh for its activations only"
                   : "has Sigmoid and Tanh for its activations only");
  }
}

// RNN: one activation for all directions.
dnnl::algorithm function_of(const Node& node, int64_t directions) {
  std::vector<std::string> names = function_names(node);
  if (names.empty()) return dnnl::algorithm::eltwise_tanh;
  if (directions == 2 && names.front() != names.back()) {
    refuse("has one activation for both directions");
  }
  if (names.front() == "tanh") return dnnl::algorithm::eltwise_tanh;
  if (names.front() == "relu") return dnnl::algorithm::eltwise_relu;
  if (names.front() == "sigmoid") return dnnl::algorithm::eltwise_logistic;
  refuse("has Tanh, Relu or Sigmoid for its activation only");
}

Problem problem_of(const Node& node) {
  check_inputs(node);
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> recurrent = node.input(2).type().dims;
  Problem problem = {cell_of(node), {input[0], input[1], input[2], recurrent[2], recurrent[0]}};
  const plugin::Attributes attributes = node.attributes();
  if (attributes.get_int("layout") != 0) refuse("takes steps before batches only (layout = 0)");
  if (attributes.get_int("input_forget") != 0)
    refuse("does not couple the input and forget gates (input_forget)");
  if (attributes.has("clip")) refuse("does not clip its sums");
  if (node.op() == "RNN") {
    problem.function = function_of(node, problem.sizes.directions);
  } else {
    check_functions(node);
  }
  check_lengths(node, problem.sizes.steps);
  return problem;
}

// --- Primitive -----------------------------------------------------------------------------------

dnnl::rnn_direction direction_of(const Node& node, const RecurrenceSizes& sizes) {
  const bool is_reverse = node.attributes().get_string("direction") == "reverse";
  if (sizes.directions == 2) return dnnl::rnn_direction::bidirectional_concat;
  return is_reverse ? dnnl::rnn_direction::unidirectional_right2left
                    : dnnl::rnn_direction::unidirectional_left2right;
}

// Empty if the library has none. Weights are in its preferred format, or in a plain one.
dnnl::rnn_primitive_desc_base describe_recurrence(const Context& context, const Node& node,
                                                  const Problem& problem, bool is_any) {
  const auto& [cell, sizes, function] = problem;
  const auto weights_of = [&](int64_t inputs) {
    const memory::dims dims = {1, sizes.directions, inputs, cell.gate_count(), sizes.hidden};
    return memory::desc(dims, memory::data_type::f32, is_any ? Tag::any : Tag::ldigo);
  };
  const dnnl::engine& engine = context.engine();
  const auto kind = dnnl::prop_kind::forward_inference;
  const dnnl::rnn_direction direction = direction_of(node, sizes);
  const memory::desc input = describe(Format::RowMajor, {sizes.steps, sizes.batch, sizes.features});
  const memory::desc output =
      describe(Format::RowMajor, {sizes.steps, sizes.batch, sizes.directions * sizes.hidden});
  const memory::desc weights = weights_of(sizes.features);
  const memory::desc recurrent = weights_of(sizes.hidden);
  const memory::desc bias({1, sizes.directions, cell.bias_count(), sizes.hidden},
                          memory::data_type::f32, Tag::ldgo);
  const memory::desc state({1, sizes.directions, sizes.batch, sizes.hidden}, memory::data_type::f32,
                           Tag::ldnc);
  const bool has_state = node.input(5).is_present() || node.input(6).is_present();
  const memory::desc initial = has_state ? state : memory::desc();
  const dnnl::primitive_attr attributes = context.attributes();
  if (cell.has_cell_state) {
    return dnnl::lstm_forward::primitive_desc(engine, kind, direction, input, initial, initial,
                                              weights, recurrent, bias, output, state, state,
                                              attributes, true);
  }
  if (function != dnnl::algorithm::undef) {
    return dnnl::vanilla_rnn_forward::primitive_desc(engine, kind, function, direction, input,
                                                     initial, weights, recurrent, bias, output,
                                                     state, attributes, true);
  }
  if (cell.bias_count() > cell.gate_count()) {
    return dnnl::lbr_gru_forward::primitive_desc(engine, kind, direction, input, initial, weights,
                                                 recurrent, bias, output, state, attributes, true);
  }
  return dnnl::gru_forward::primitive_desc(engine, kind, direction, input, initial, weights,
                                           recurrent, bias, output, state, attributes, true);
}

bool has_plain_weights(const dnnl::rnn_primitive_desc_base& description) {
  return format_text(description.weights_layer_desc()) &&
         format_text(description.weights_iter_desc());
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

void offer_recurrence(Context& context, const Node& node, const Problem& problem,
                      const dnnl::rnn_primitive_desc_base& description,
                      const std::optional<Node>& transpose) {
  const auto& [cell, sizes, function] = problem;
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  if (transpose) candidate.nodes.push_back(transpose->id());
  candidate.algorithm = description.impl_info_str();
  if (is_rough_recurrence(node.op(), sizes.steps, function)) {
    candidate.flags |= TESSERA_CANDIDATE_ROUGH;
  }
  RecurrencePorts ports;
  ports.is_side_by_side = transpose.has_value();
  ports.input = plugin::input_port(candidate, node.input(0));
  ports.weights =
      plugin::input_port(candidate, node.input(1),
                         recurrence_weights_pack(context.engine(), cell, sizes, sizes.features,
                                                 description.weights_layer_desc()));
  ports.recurrent =
      plugin::input_port(candidate, node.input(2),
                         recurrence_weights_pack(context.engine(), cell, sizes, sizes.hidden,
                                                 description.weights_iter_desc()));
  if (node.input(3).is_present()) {
    ports.bias = plugin::input_port(candidate, node.input(3), recurrence_bias_pack(cell, sizes));
  }
  ports.initial_state = plugin::input_port(candidate, node.input(5));
  ports.initial_cell = plugin::input_port(candidate, node.input(6));
  ports.output = plugin::output_port(candidate, transpose ? transpose->output(0) : node.output(0));
  ports.last_state = plugin::output_port(candidate, node.output(1));
  ports.last_cell = plugin::output_port(candidate, node.output(2));
  candidate.workspace_bytes = recurrence_workspace_bytes(description, sizes);
  const auto rows = static_cast<double>(sizes.steps * sizes.batch * sizes.directions);
  const auto inputs = static_cast<double>(sizes.features + sizes.hidden);
  const double weights = static_cast<double>(cell.gate_count() * sizes.hidden) * inputs;
  candidate.optimistic_seconds = context.optimistic_seconds(
      2 * rows * weights, static_cast<double>(sizes.directions) * weights * sizeof(float),
      description.impl_info_str());
  candidate.build = [description, problem, ports](const plugin::BuildOptions&) {
    return make_recurrence_kernel(description, problem.cell, problem.sizes, ports);
  };
  context.add(std::move(candidate));
}

void offer_recurrences(Context& context, const Node& node) {
  const std::vector<std::string> functions = function_names(node);
  if (context.keeps_nan() && std::ranges::find(functions, "relu") != functions.end()) {
    refuse(explain_lost_nan("Relu"));
  }
  const Problem problem = problem_of(node);
  dnnl::rnn_primitive_desc_base description = describe_recurrence(context, node, problem, true);
  // Opaque formats of the library have no name for the id of a pack.
  if (description && !has_plain_weights(description)) {
    description = describe_recurrence(context, node, problem, false);
  }
  if (!description || !has_plain_weights(description)) {
    refuse("oneDNN has no " + std::string(node.op()) + " of this shape");
  }
  const std::optional<Node> transpose = transpose_after(context.graph(), node.output(0));
  if (transpose) offer_recurrence(context, node, problem, description, transpose);
  offer_recurrence(context, node, problem, description, std::nullopt);
}

}  // namespace

void propose_recurrences(Context& context) {
  context.for_each({"LSTM", "GRU", "RNN"},
                   [&](const Node& node) { offer_recurrences(context, node); });
}

}  // namespace tessera::onednn
