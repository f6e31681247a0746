#include "price/group_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "backend/packs.h"

namespace tessera::tuning {
namespace {

// Floating-point constants up to this size are parameters (limits of a clip, a scale), not weights.
constexpr int64_t kMaxParameters = 4;
// Integer constants up to this size may determine shapes; larger ones are tables or quantised
// weights.
constexpr int64_t kMaxShapeNumbers = 256;

std::string number_text(float number) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), end};
}

std::string digest_text(const Tensor& tensor) {
  return "#" + cache::hexadecimal(digest_of(tensor));
}

std::string digest_text(const Value& constant) {
  return constant.digest ? "#" + cache::hexadecimal(*constant.digest)
                         : digest_text(constant.constant);
}

std::string type_text(const Type& type) {
  if (!type.is_tensor() || !type.shape) return text(type);
  return std::string(name(type.element)) + " " + text(*type.shape);
}

struct AttributeWriter {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(float value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(const Tensor& value) const { return digest_text(value); }
  std::string operator()(const Type& value) const { return text(value); }
  template <class Element>
  std::string operator()(const std::vector<Element>& values) const {
    std::string list = "[";
    for (const Element& value : values) list += (list.size() > 1 ? "," : "") + (*this)(value);
    return list + "]";
  }
};

bool can_be_measured(const Graph& group, const ops::Registry& registry) {
  const auto is_known = [&](ValueId id) {
    return id.is_none() || group[id].type.is_known_tensor();
  };
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](const Node& node) {
    return node.bodies.empty() && !registry.has_trait(node, ops::kRandom) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), is_known) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), is_known);
  });
}

// Whether kernels may have absorbed its elements.
bool is_parameter(const Tensor& constant) {
  return !is_floating(constant.type()) || constant.elements() <= kMaxParameters;
}

bool may_decide_shapes(const Tensor& constant) {
  return !is_floating(constant.type()) && constant.elements() <= kMaxShapeNumbers;
}

struct WrittenParts {
  // Which constants are represented by their elements.
  bool (*has_elements)(const Tensor& constant) = is_parameter;
  bool has_types = true;     // of non-constant values
  bool has_results = false;  // kept values, sparse forms, and devices of inputs and outputs
};

class Writer {
 public:
  Writer(const Graph& group, const WrittenParts& parts) : group_(group), parts_(parts) {
    result_.names.resize(group.values.size());
  }

  // The captures of nested graphs.
  void name_capture(ValueId inner, const std::string& outer) { name_of(inner) = "^" + outer; }

  GroupText write() {
    for (const Node& node : group_.nodes) add_node(node);
    if (parts_.has_results) add_results();
    std::string types;
    for (const std::string& declared : types_) types += (types.empty() ? "" : ", ") + declared;
    std::string outputs;
    for (const ValueId output : group_.outputs) outputs += " " + name_of(output);
    result_.text = types + ":" + result_.text + " ->" + outputs;
    return std::move(result_);
  }

 private:
  void add_results() {
    for (const ValueId input : group_.inputs) {
      // In the order in which the caller feeds them.
      types_.push_back("in " + (name_of(input).empty() ? "_" : name_of(input)));
    }
    for (const ValueId output : group_.outputs) read(output);
    for (const ValueId kept : group_.kept) types_.push_back("kept " + read(kept));
    for (size_t index = 0; index < group_.values.size(); ++index) {
      const Value& value = group_.values[index];
      if (!value.sparse) continue;
      types_.push_back(result_.names[index] + " " + tessera::text(*value.sparse) +
                       (value.is_io_sparse ? " exchanged" : ""));
    }
    for (size_t index = 0; index < group_.values.size(); ++index) {
      const std::string& device = group_.values[index].io_device;
      if (!device.empty()) types_.push_back(result_.names[index] + " exchanged on " + device);
    }
  }

  std::string& name_of(ValueId id) { return result_.names[static_cast<size_t>(id.index)]; }

  std::string read(ValueId id) {
    if (id.is_none()) return "_";
    std::string& name = name_of(id);
    if (!name.empty()) return name;
    const Value& value = group_[id];
    name =
        value.is_constant() ? "c" + std::to_string(constants_++) : "i" + std::to_string(inputs_++);
    std::string declared = name;
    if (parts_.has_types || value.is_constant()) declared += " " + type_text(value.type);
    const Tensor& constant = value.constant;
    const bool has_elements =
        value.is_constant() && constant.has_elements() && parts_.has_elements(constant);
    if (has_elements) declared += " " + digest_text(value);
    types_.push_back(std::move(declared));
    return name;
  }

  void add_node(const Node& node) {
    std::string inputs;
    for (const ValueId input : node.inputs) inputs += (inputs.empty() ? "" : ",") + read(input);
    std::string outputs;
    for (const ValueId output : node.outputs) {
      std::string written = "_";
      if (!output.is_none()) written = name_of(output) = "v" + std::to_string(made_++);
      outputs += (outputs.empty() ? "" : ",") + written;
    }
    std::string attributes;
    for (const auto& [key, attribute] : node.attributes.all()) {
      attributes += " " + key + "=" + std::visit(AttributeWriter(), attribute);
    }
    result_.text += (result_.text.empty() ? " " : "; ") + outputs + "=" +
                    (node.domain.empty() ? "" : node.domain + "::") + node.op + "." +
                    std::to_string(node.version) + "(" + inputs + ")" + attributes;
    for (const Body& body : node.bodies) add_body(body);
  }

  void add_body(const Body& body) {
    Writer writer(body.graph, parts_);
    for (const Capture& capture : body.graph.captures) {
      writer.name_capture(capture.inner, read(capture.outer));
    }
    result_.text += " " + body.attribute + "={" + writer.write().text + "}";
  }

  const Graph& group_;
  WrittenParts parts_;
  GroupText result_;
  std::vector<std::string> types_;
  int inputs_ = 0;
  int constants_ = 0;
  int made_ = 0;
};

}  // namespace

std::optional<GroupText> group_text(const Graph& group, const ops::Registry& registry) {
  if (!can_be_measured(group, registry)) return std::nullopt;
  return Writer(group, {}).write();
}

StructureText structure_text(const Graph& graph, ValueTypes types) {
  GroupText written = Writer(graph, {.has_elements = may_decide_shapes,
                                     .has_types = types == ValueTypes::Written,
                                     .has_results = true})
                          .write();
  return {std::move(written.text), std::move(written.names)};
}

std::string layouts_text(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts,
                         const Graph& group, const GroupText& text) {
  std::map<std::string, std::string> names;
  for (size_t index = 0; index < group.values.size(); ++index) {
    names[group.values[index].name] = text.names[index];
  }
  return named_ports_text(candidate, layouts,
                          [&](ValueId value) { return names[graph[value].name]; });
}

}  // namespace tessera::tuning
