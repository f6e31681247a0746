// Searches for patterns in graphs; parse_pattern.cc parses their text.
#include "backend/contract/pattern.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <set>
#include <type_traits>

#include "tessera/float16.h"

namespace tessera {
namespace {

constexpr double kNumberTolerance = 1e-6;

bool is_close(double found, double wanted) {
  if (found == wanted) return true;
  return std::abs(found - wanted) <= kNumberTolerance * std::max(1.0, std::abs(wanted));
}

// A 16-bit float cannot represent 0.044715, so the nearest representable number matches.
template <class Stored>
bool is_close_in(const void* data, double wanted) {
  const Stored found = *static_cast<const Stored*>(data);
  if constexpr (std::is_arithmetic_v<Stored>) {
    return is_close(static_cast<double>(found), wanted);
  } else {
    return found.bits == Stored(wanted).bits || is_close(static_cast<float>(found), wanted);
  }
}

bool has_number(const Tensor& tensor, double wanted) {
  if (tensor.elements() != 1) return false;
  switch (tensor.type()) {
    case DataType::Float16:
      return is_close_in<Float16>(tensor.data(), wanted);
    case DataType::BFloat16:
      return is_close_in<BFloat16>(tensor.data(), wanted);
    case DataType::Float32:
      return is_close_in<float>(tensor.data(), wanted);
    case DataType::Float64:
      return is_close_in<double>(tensor.data(), wanted);
    case DataType::Bool:
    case DataType::UInt8:
      return is_close_in<uint8_t>(tensor.data(), wanted);
    case DataType::UInt16:
      return is_close_in<uint16_t>(tensor.data(), wanted);
    case DataType::UInt32:
      return is_close_in<uint32_t>(tensor.data(), wanted);
    case DataType::UInt64:
      return is_close_in<uint64_t>(tensor.data(), wanted);
    case DataType::Int8:
      return is_close_in<int8_t>(tensor.data(), wanted);
    case DataType::Int16:
      return is_close_in<int16_t>(tensor.data(), wanted);
    case DataType::Int32:
      return is_close_in<int32_t>(tensor.data(), wanted);
    case DataType::Int64:
      return is_close_in<int64_t>(tensor.data(), wanted);
    case DataType::Undefined:
    case DataType::String:
    case DataType::Sequence:
    case DataType::Map:
      return false;
  }
  return false;
}

template <class Element>
bool are_close(const std::vector<Element>& found, const std::vector<double>& wanted) {
  return std::ranges::equal(found, wanted, [](Element left, double right) {
    return is_close(static_cast<double>(left), right);
  });
}

bool fits(const Attribute& found, const PatternAttribute& wanted) {
  if (const auto* number = std::get_if<double>(&wanted)) {
    if (const auto* value = std::get_if<int64_t>(&found)) {
      return is_close(static_cast<double>(*value), *number);
    }
    const auto* value = std::get_if<float>(&found);
    return value != nullptr && is_close(*value, *number);
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&wanted)) {
    if (const auto* values = std::get_if<std::vector<int64_t>>(&found)) {
      return are_close(*values, *numbers);
    }
    const auto* values = std::get_if<std::vector<float>>(&found);
    return values != nullptr && are_close(*values, *numbers);
  }
  if (const auto* text = std::get_if<std::string>(&wanted)) {
    const auto* value = std::get_if<std::string>(&found);
    return value != nullptr && *value == *text;
  }
  const auto* values = std::get_if<std::vector<std::string>>(&found);
  return values != nullptr && *values == std::get<std::vector<std::string>>(wanted);
}

bool fits(const Node& node, const PatternOp& op) {
  if (node.op != op.name || node.domain != op.domain) return false;
  return std::ranges::all_of(op.attributes, [&](const auto& wanted) {
    const auto found = node.attributes.all().find(wanted.first);
    return found != node.attributes.all().end() && fits(found->second, wanted.second);
  });
}

bool is_commutative(const Node& node) {
  static constexpr std::array<std::string_view, 13> kOps = {
      "Add",  "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max",
      "Mean", "Min", "Mul",        "Or",        "Sum",        "Xor"};
  return node.domain.empty() && std::ranges::find(kOps, node.op) != kOps.end();
}

class Matcher {
 public:
  Matcher(const Graph& graph, const PatternIndex& index, const Pattern& pattern)
      : graph_(graph), index_(index), pattern_(pattern) {
    nodes_.resize(pattern.steps.size());
    captures_.resize(pattern.captures.size());
    capture_reads_.resize(pattern.captures.size());
    for (const PatternStep& step : pattern.steps) {
      for (const PatternInput& input : step.inputs) {
        if (input.kind == PatternInput::Kind::Capture) ++capture_reads_[input.capture];
        if (input.kind == PatternInput::Kind::StepOutput) ++inner_reads_;
      }
    }
  }

  std::vector<std::vector<NodeId>> run() {
    const size_t last = pattern_.steps.size() - 1;
    std::vector<NodeId> roots;
    for (const PatternOp& op : pattern_.steps[last].ops) {
      const std::vector<NodeId>& nodes = index_.nodes_of(op.domain, op.name);
      roots.insert(roots.end(), nodes.begin(), nodes.end());
    }
    // An op may occur twice among the alternatives, with different attributes.
    std::ranges::sort(roots);
    const auto repeated = std::ranges::unique(roots);
    roots.erase(repeated.begin(), repeated.end());
    // In reverse order, so that of interchangeable nodes the later one becomes the last step.
    for (const NodeId root : roots | std::views::reverse) {
      with_node(last, root, [&] { search_from(0); });
    }
    std::ranges::stable_sort(matches_, {}, [](const auto& match) { return match.back(); });
    return std::move(matches_);
  }

 private:
  // Binds the step to the node while `then` runs, if the node matches.
  template <class Then>
  void with_node(size_t step, NodeId id, const Then& then) {
    if (std::ranges::find(nodes_, id) != nodes_.end()) return;
    const PatternStep& wanted = pattern_.steps[step];
    const Node& node = graph_[id];
    const auto fits_node = [&](const PatternOp& op) { return fits(node, op); };
    if (std::ranges::none_of(wanted.ops, fits_node)) return;
    if (!wanted.output_reads.empty() && !wanted.allows_outside_readers &&
        !is_read_by_pattern_only(node, wanted)) {
      return;
    }
    nodes_[step] = id;
    then();
    nodes_[step] = {};
  }

  // Every reader in the match names the step, so the count reveals outside readers.
  bool is_read_by_pattern_only(const Node& node, const PatternStep& step) const {
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId value = node.outputs[output];
      if (value.is_none()) continue;
      const int reads = output < step.output_reads.size() ? step.output_reads[output] : 0;
      if (index_.is_needed(value)) return false;
      if (index_.readers(value).size() != static_cast<size_t>(reads)) return false;
    }
    return true;
  }

  void search_from(size_t position) {
    if (position == pattern_.search.size()) return finish();
    const PatternSearch& search = pattern_.search[position];
    if (!search.known_input) return match_inputs(position);
    const ValueId known = known_value(pattern_.steps[search.step].inputs[*search.known_input]);
    if (known.is_none()) return;
    NodeId before;
    for (const NodeId reader : index_.readers(known)) {
      if (reader == before) continue;
      before = reader;
      with_node(search.step, reader, [&] { match_inputs(position); });
    }
  }

  ValueId known_value(const PatternInput& input) const {
    if (input.kind == PatternInput::Kind::Capture) return captures_[input.capture];
    const std::vector<ValueId>& outputs = graph_[nodes_[input.step]].outputs;
    return input.output < outputs.size() ? outputs[input.output] : ValueId();
  }

  void match_inputs(size_t position) {
    const size_t step = pattern_.search[position].step;
    const PatternStep& wanted = pattern_.steps[step];
    const Node& node = graph_[nodes_[step]];
    if (!wanted.allows_more_inputs) {
      for (size_t index = wanted.inputs.size(); index < node.inputs.size(); ++index) {
        if (!node.inputs[index].is_none()) return;
      }
    }
    if (is_commutative(node)) {
      std::vector<bool> is_taken(node.inputs.size(), false);
      match_in_any_order(position, 0, is_taken);
    } else {
      match_in_order(position, 0);
    }
  }

  void match_in_order(size_t position, size_t index) {
    const size_t step = pattern_.search[position].step;
    const std::vector<PatternInput>& wanted = pattern_.steps[step].inputs;
    if (index == wanted.size()) return search_from(position + 1);
    const std::vector<ValueId>& inputs = graph_[nodes_[step]].inputs;
    const ValueId value = index < inputs.size() ? inputs[index] : ValueId();
    with_input(wanted[index], value, [&] { match_in_order(position, index + 1); });
  }

  // Matches inputs with requirements first, trying each position; the others only have to agree in
  // number. Otherwise ops with many inputs would take exponential time.
  void match_in_any_order(size_t position, size_t index, std::vector<bool>& is_taken) {
    const size_t step = pattern_.search[position].step;
    const std::vector<PatternInput>& wanted = pattern_.steps[step].inputs;
    const std::vector<ValueId>& inputs = graph_[nodes_[step]].inputs;
    while (index < wanted.size() && accepts_any_value(wanted[index])) ++index;
    if (index == wanted.size()) {
      if (can_fill_rest(wanted, inputs, is_taken)) search_from(position + 1);
      return;
    }
    for (size_t input = 0; input < inputs.size(); ++input) {
      if (is_taken[input]) continue;
      is_taken[input] = true;
      with_input(wanted[index], inputs[input],
                 [&] { match_in_any_order(position, index + 1, is_taken); });
      is_taken[input] = false;
    }
  }

  // Whether the input accepts any value, so that its choice affects nothing else.
  bool accepts_any_value(const PatternInput& input) const {
    return input.kind == PatternInput::Kind::Any || input.kind == PatternInput::Kind::Constant ||
           (input.kind == PatternInput::Kind::Capture && capture_reads_[input.capture] == 1);
  }

  bool can_fill_rest(const std::vector<PatternInput>& wanted, const std::vector<ValueId>& inputs,
                     const std::vector<bool>& is_taken) const {
    size_t constants = 0;
    size_t values = 0;
    for (size_t input = 0; input < inputs.size(); ++input) {
      if (is_taken[input] || inputs[input].is_none()) continue;
      ++values;
      if (graph_[inputs[input]].is_constant()) ++constants;
    }
    size_t wanted_constants = 0;
    size_t wanted_values = 0;
    for (const PatternInput& input : wanted) {
      if (!accepts_any_value(input) || input.kind == PatternInput::Kind::Any) continue;
      ++wanted_values;
      if (input.kind == PatternInput::Kind::Constant) ++wanted_constants;
    }
    return wanted_constants <= constants && wanted_values <= values;
  }

  // Continues with `then` if the value (none() if omitted) matches this input.
  template <class Then>
  void with_input(const PatternInput& wanted, ValueId value, const Then& then) {
    using Kind = PatternInput::Kind;
    if (wanted.kind == Kind::Any) return then();
    if (value.is_none()) return;
    switch (wanted.kind) {
      case Kind::Any:
        return;
      case Kind::Constant:
        if (graph_[value].is_constant()) then();
        return;
      case Kind::Number:
        if (graph_[value].is_constant() && has_number(graph_[value].constant, wanted.number)) {
          then();
        }
        return;
      case Kind::Capture:
        return with_capture(wanted.capture, value, then);
      case Kind::StepOutput:
        break;
    }
    const NodeId producer = index_.producer(value);
    if (producer.is_none() || index_.output_of(value) != wanted.output) return;
    if (nodes_[wanted.step] == producer) return then();
    if (nodes_[wanted.step].is_none()) with_node(wanted.step, producer, then);
  }

  template <class Then>
  void with_capture(size_t capture, ValueId value, const Then& then) {
    ValueId& bound = captures_[capture];
    if (bound == value) return then();
    if (!bound.is_none()) return;
    bound = value;
    then();
    bound = {};
  }

  void finish() {
    if (reads_inside() != inner_reads_ || has_outside_path()) return;
    std::vector<NodeId> covered = nodes_;
    std::ranges::sort(covered);
    if (covered_.insert(std::move(covered)).second) matches_.push_back(nodes_);
  }

  bool is_inside(NodeId node) const { return std::ranges::find(nodes_, node) != nodes_.end(); }

  size_t reads_inside() const {
    size_t count = 0;
    for (const NodeId node : nodes_) {
      for (const ValueId input : graph_[node].inputs) {
        if (input.is_none()) continue;
        const NodeId producer = index_.producer(input);
        if (!producer.is_none() && is_inside(producer)) ++count;
      }
    }
    return count;
  }

  // Whether a path leads out of the match through an outside node and back into it.
  bool has_outside_path() const {
    const NodeId newest = *std::ranges::max_element(nodes_);
    std::set<NodeId> outside;
    std::vector<NodeId> open;
    // False if the path leads back into the match.
    const auto follow = [&](NodeId id, bool is_from_inside) {
      for (const ValueId output : graph_[id].outputs) {
        if (output.is_none()) continue;
        for (const NodeId reader : index_.readers(output)) {
          if (reader > newest) break;
          if (is_inside(reader)) {
            if (!is_from_inside) return false;
          } else if (outside.insert(reader).second) {
            open.push_back(reader);
          }
        }
      }
      return true;
    };
    for (const NodeId node : nodes_) follow(node, true);
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (!follow(node, false)) return true;
    }
    return false;
  }

  const Graph& graph_;
  const PatternIndex& index_;
  const Pattern& pattern_;
  std::vector<int> capture_reads_;
  size_t inner_reads_ = 0;

  std::vector<NodeId> nodes_;      // by step; none() if not found yet
  std::vector<ValueId> captures_;  // by capture
  std::set<std::vector<NodeId>> covered_;
  std::vector<std::vector<NodeId>> matches_;
};

}  // namespace

PatternIndex::PatternIndex(const Graph& graph)
    : producers_(graph.values.size()),
      outputs_(graph.values.size()),
      is_needed_(graph.values.size(), false),
      readers_(graph.values.size()) {
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    if (node.is_removed) continue;
    const NodeId id = {static_cast<int32_t>(index)};
    nodes_[{node.domain, node.op}].push_back(id);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      if (node.outputs[output].is_none()) continue;
      producers_[at(node.outputs[output])] = id;
      outputs_[at(node.outputs[output])] = output;
    }
    for (const ValueId input : node.inputs) {
      if (!input.is_none()) readers_[at(input)].push_back(id);
    }
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) {
        readers_[at(capture.outer)].push_back(id);
        is_needed_[at(capture.outer)] = true;
      }
    }
  }
  for (const ValueId output : graph.outputs) is_needed_[at(output)] = true;
  for (const ValueId kept : graph.kept) is_needed_[at(kept)] = true;
}

const std::vector<NodeId>& PatternIndex::nodes_of(const std::string& domain,
                                                  const std::string& op) const {
  static const std::vector<NodeId> kNone;
  const auto found = nodes_.find({domain, op});
  return found == nodes_.end() ? kNone : found->second;
}

std::vector<std::vector<NodeId>> find_matches(const Graph& graph, const PatternIndex& index,
                                              const Pattern& pattern) {
  return Matcher(graph, index, pattern).run();
}

}  // namespace tessera
