#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewrite/passes.h"
#include "rewrite/unique_names.h"

namespace tessera {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// Ops that copy elements of their first input, whatever these stand for.
constexpr std::array<std::string_view, 18> kCopying = {
    "DepthToSpace", "Expand",  "Flatten", "Gather",    "GatherElements", "GatherND",
    "Identity",     "MaxPool", "Reshape", "Resize",    "Slice",          "SpaceToDepth",
    "Split",        "Squeeze", "Tile",    "Transpose", "Unsqueeze",      "Upsample"};

bool is_of_pair(const Node& node, std::string_view op) {
  return node.op == op && (node.domain.empty() || node.domain == kMicrosoft);
}
bool is_quantize(const Node& node) { return is_of_pair(node, "QuantizeLinear"); }
bool is_dequantize(const Node& node) { return is_of_pair(node, "DequantizeLinear"); }

std::string text_of(const Node& node, const char* name) {
  const std::string* const found = node.attributes.find_string(name);
  return found == nullptr ? "" : *found;
}

// Whether the node copies elements: of its first input, or of all inputs (Concat).
bool copies(const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || !node.bodies.empty()) return false;
  if (node.op == "Concat") return true;
  if (std::ranges::find(kCopying, node.op) == kCopying.end()) return false;
  if (node.op == "MaxPool") return node.outputs.size() < 2 || node.outputs[1].is_none();
  if (node.op != "Resize" && node.op != "Upsample") return true;
  // The value outside of a crop is a real number.
  return text_of(node, "mode") == "nearest" &&
         text_of(node, "coordinate_transformation_mode") != "tf_crop_and_resize";
}

size_t copied_inputs(const Node& node) { return node.op == "Concat" ? node.inputs.size() : 1; }

bool is_number(const Tensor& tensor) {
  return tensor.has_elements() && tensor.elements() == 1 && tensor.dims().size() < 2;
}

// A scale that is neither so small nor so large that a product with an integer of 16 bits is
// rounded by more than a few units in the last place.
bool is_usual(const Tensor& scale) {
  if (!is_number(scale) || scale.type() != DataType::Float32) return false;
  const float number = scale.as<float>()[0];
  return number > 1e-30F && number < 1e30F;
}

bool are_equal(const Tensor& left, const Tensor& right) {
  return left.type() == right.type() && left.bytes() == right.bytes() &&
         std::memcmp(left.data(), right.data(), static_cast<size_t>(left.bytes())) == 0;
}

class Sinking {
 public:
  Sinking(Graph graph, const PassContext& context)
      : graph_(std::move(graph)),
        context_(context),
        is_wanted_(graph_.values.size(), false),
        makers_(graph_.values.size()),
        replacements_(graph_.values.size()) {
    for (const Value& value : graph_.values) value_names_.take(value.name);
    for (const Node& node : graph_.nodes) node_names_.take(node.name);
  }

  Graph run() {
    find_wanted();
    std::vector<Node> nodes = std::exchange(graph_.nodes, {});
    for (Node& node : nodes) {
      if (copies(node) && sink(node)) continue;
      if (is_quantize(node) && drop(node)) continue;
      append(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  static size_t at(ValueId id) { return static_cast<size_t>(id.index); }

  // The values that are read as integers in the end: by a QuantizeLinear, perhaps after copies.
  void find_wanted() {
    std::vector<bool> is_read_otherwise(graph_.values.size(), false);
    std::vector<bool> is_read(graph_.values.size(), false);
    for (const ValueId id : graph_.outputs) is_read_otherwise[at(id)] = true;
    for (const ValueId id : graph_.kept) is_read_otherwise[at(id)] = true;
    for (size_t number = graph_.nodes.size(); number-- > 0;) {
      const Node& node = graph_.nodes[number];
      const auto is_wanted = [&](ValueId id) {
        return id.is_none() || (is_read[at(id)] && !is_read_otherwise[at(id)]);
      };
      const bool reads_integers =
          is_quantize(node) || (copies(node) && std::ranges::all_of(node.outputs, is_wanted));
      const size_t count = is_quantize(node) ? 1 : reads_integers ? copied_inputs(node) : 0;
      for (size_t index = 0; index < node.inputs.size(); ++index) {
        const ValueId id = node.inputs[index];
        if (id.is_none()) continue;
        is_read[at(id)] = true;
        if (index >= count) is_read_otherwise[at(id)] = true;
      }
      for (const Body& body : node.bodies) {
        for (const Capture& capture : body.graph.captures) {
          is_read_otherwise[at(capture.outer)] = true;
        }
      }
    }
    for (size_t index = 0; index < is_wanted_.size(); ++index) {
      is_wanted_[index] = is_read[index] && !is_read_otherwise[index];
    }
  }

  // The DequantizeLinear with one scale that makes a value; null if none does.
  const Node* dequantize_of(ValueId id) const {
    const NodeId maker = makers_[at(id)];
    if (maker.is_none() || !is_dequantize(graph_[maker])) return nullptr;
    const Node& node = graph_[maker];
    const auto& scale = graph_[node.inputs[1]];
    if (graph_[node.inputs[0]].is_state || !is_usual(scale.constant)) return nullptr;
    if (graph_[id].type.element != DataType::Float32) return nullptr;
    if (node.inputs.size() > 2 && !node.inputs[2].is_none() &&
        !is_number(graph_[node.inputs[2]].constant)) {
      return nullptr;
    }
    return &node;
  }

  // Whether both nodes have the same scale, zero point and type of integers.
  bool are_alike(const Node& left, DataType left_type, const Node& right,
                 DataType right_type) const {
    if (left_type != right_type) return false;
    const Tensor& left_scale = graph_[left.inputs[1]].constant;
    const Tensor& right_scale = graph_[right.inputs[1]].constant;
    if (!is_number(right_scale) || !are_equal(left_scale, right_scale)) return false;
    const std::optional<double> left_zero = zero_point(left);
    return left_zero && left_zero == zero_point(right);
  }

  std::optional<double> zero_point(const Node& node) const {
    if (node.inputs.size() < 3 || node.inputs[2].is_none()) return 0;
    const Tensor& tensor = graph_[node.inputs[2]].constant;
    if (!is_number(tensor)) return std::nullopt;
    switch (tensor.type()) {
      case DataType::Int8:
        return tensor.as<int8_t>()[0];
      case DataType::UInt8:
        return tensor.as<uint8_t>()[0];
      case DataType::Int16:
        return tensor.as<int16_t>()[0];
      case DataType::UInt16:
        return tensor.as<uint16_t>()[0];
      default:
        return std::nullopt;
    }
  }

  bool takes(const Node& node, DataType type) const {
    const ops::Op& op = context_.registry.of(node);
    if (op.inputs.empty()) return false;
    const std::string& variable = op.inputs[0].type_variable;
    return std::ranges::any_of(op.type_variables, [&](const ops::TypeVariable& each) {
      return each.name == variable && each.types_in(node.version).contains(type);
    });
  }

  // Makes a copying node read integers, and dequantises what it makes.
  bool sink(Node& node) {
    const auto is_wanted = [&](ValueId id) {
      return id.is_none() || (is_wanted_[at(id)] && !graph_[id].is_state);
    };
    if (!std::ranges::all_of(node.outputs, is_wanted)) return false;
    const Node* const first = dequantize_of(node.inputs[0]);
    if (first == nullptr) return false;
    const DataType type = graph_[first->inputs[0]].type.element;
    if (!takes(node, type) || (type != DataType::Int8 && type != DataType::UInt8)) return false;
    std::vector<ValueId> integers;
    for (size_t index = 0; index < copied_inputs(node); ++index) {
      const Node* const maker = dequantize_of(node.inputs[index]);
      if (maker == nullptr) return false;
      const DataType other = graph_[maker->inputs[0]].type.element;
      if (!are_alike(*first, type, *maker, other)) return false;
      integers.push_back(maker->inputs[0]);
    }
    const Node pattern = *first;
    std::ranges::copy(integers, node.inputs.begin());
    std::vector<Node> after;
    for (ValueId& output : node.outputs) {
      if (output.is_none()) continue;
      const ValueId real = std::exchange(output, add_integers(output, type));
      Node dequantize = pattern;
      dequantize.name = node_names_.make(pattern.name, node.name);
      dequantize.inputs[0] = output;
      dequantize.outputs = {real};
      after.push_back(std::move(dequantize));
    }
    context_.changes.push_back(location_of(node) + " moves integers, before " +
                               location_of(pattern));
    append(std::move(node));
    for (Node& dequantize : after) append(std::move(dequantize));
    return true;
  }

  ValueId add_integers(ValueId real, DataType type) {
    Value value;
    value.name = value_names_.make(graph_[real].name + ".integers", "sunk");
    value.type = graph_[real].type;
    value.type.element = type;
    const ValueId id = add_value(graph_, std::move(value));
    makers_.emplace_back();
    is_wanted_.push_back(false);
    replacements_.emplace_back();
    return id;
  }

  // Whether a QuantizeLinear gives the integers back from which its input was made; then their
  // value replaces its output, or the reverse if the output must keep its name.
  bool drop(const Node& node) {
    const Node* const maker = dequantize_of(node.inputs[0]);
    const ValueId output = node.outputs[0];
    if (maker == nullptr || graph_[output].is_state) return false;
    const ValueId integers = maker->inputs[0];
    const DataType type = graph_[integers].type.element;
    if (!are_alike(*maker, type, node, graph_[output].type.element)) return false;
    const std::string change =
        location_of(node) + " removed: it gives back the integers of " + location_of(*maker);
    if (!is_named(output)) {
      replacements_[at(output)] = integers;
    } else if (!makers_[at(integers)].is_none() && !is_named(integers)) {
      rename(integers, output);
    } else {
      return false;
    }
    context_.changes.push_back(change);
    return true;
  }

  // Makes the nodes so far, and those to come, use `to` in place of `from`, which a node makes.
  void rename(ValueId from, ValueId to) {
    makers_[at(to)] = makers_[at(from)];
    for (Node& node : graph_.nodes) {
      std::ranges::replace(node.inputs, from, to);
      std::ranges::replace(node.outputs, from, to);
      for (Body& body : node.bodies) {
        for (Capture& capture : body.graph.captures) {
          if (capture.outer == from) capture.outer = to;
        }
      }
    }
    replacements_[at(from)] = to;
  }

  bool is_named(ValueId id) const {
    return std::ranges::find(graph_.outputs, id) != graph_.outputs.end() ||
           std::ranges::find(graph_.kept, id) != graph_.kept.end();
  }

  void replace(ValueId& id) const {
    while (!id.is_none() && !replacements_[at(id)].is_none()) id = replacements_[at(id)];
  }

  void append(Node node) {
    for (ValueId& input : node.inputs) replace(input);
    for (Body& body : node.bodies) {
      for (Capture& capture : body.graph.captures) replace(capture.outer);
    }
    const NodeId id = {static_cast<int32_t>(graph_.nodes.size())};
    for (const ValueId output : node.outputs) {
      if (!output.is_none()) makers_[at(output)] = id;
    }
    graph_.nodes.push_back(std::move(node));
  }

  Graph graph_;
  const PassContext& context_;
  std::vector<bool> is_wanted_;
  std::vector<NodeId> makers_;         // by value: among the nodes that were appended
  std::vector<ValueId> replacements_;  // by value; none() for most
  UniqueNames value_names_;
  UniqueNames node_names_;
};

}  // namespace

Graph sink_dequantize(Graph graph, const PassContext& context) {
  const bool has_any = std::ranges::any_of(graph.nodes, is_dequantize);
  return has_any ? Sinking(std::move(graph), context).run() : std::move(graph);
}

}  // namespace tessera
